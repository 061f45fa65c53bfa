"""Which items of the inbox a caller sees, and as what."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import not_found
from ...model.inbox import item as asks
from ..operators.caller import Caller
from ..sessions.registry import Registry
from ..sessions.session import Session
from . import hook_dialogs, items, parked_runs

Json = dict[str, Any]


class VisibleItems(NamedTuple):
    """Of an inbox whose items concern these sessions."""

    inbox: items.Inbox
    registry: Registry

    def session_of(self, item: Json) -> Session | None:
        return self.registry.sessions.get(item["session"]) if item["session"] else None

    def may_see(self, item: Json, caller: Caller) -> bool:
        """One's own, and what concerns a session one may see; what asks for a person is shown to people."""
        session = self.session_of(item)
        if not caller.reaches(session):
            return False
        if item["asker"] and item["asker"]["operator"] == caller.operator:
            return True
        if item["kind"] == "held_controls":
            return bool(item["detail"]["holder"] == caller.operator)
        if not caller.is_person and item["kind"] not in asks.SEEN:
            return False
        if item["kind"] == parked_runs.KIND:
            return caller.may("work", None) or caller.may("view", None)
        if not item["session"]:
            return True
        return caller.may("view", session)  # of one that was removed: all, or none

    def shown(self, found: list[Json], caller: Caller) -> list[Json]:
        return [self.view(i) for i in found if self.may_see(i, caller)]

    async def find(self, ask: str, caller: Caller) -> Json:
        item = await self.inbox.find(ask)
        if not self.may_see(item, caller):
            raise not_found(f"no inbox item {item['id']!r}", "hold inbox lists them")
        return item

    def view(self, item: Json) -> Json:
        session = self.session_of(item)
        return items.view(hook_dialogs.explained(item), session.name if session else None)
