"""Carrying out, later, what a person was asked about: the request as it was made, as who made it, once."""

from __future__ import annotations

import time
from typing import Any

from ...model.errors import HoldfastError
from ..doors import DoorCaller
from ..server import Reply
from ..session import Session
from ..standing import Asked, pending
from .base import number
from .commands import Commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..identity import Caller

Json = dict[str, Any]


class StandingOps(Commands):
    """What stands behind `standing` in a request (host/standing.py)."""

    async def dispatch(self, request: Json, caller: Caller) -> Reply:
        raise NotImplementedError

    async def _or_stand(self, method: Callable[[Json, Caller], Awaitable[Any]], request: Json, caller: Caller) -> Any:
        """An operation's answer; where its request stands in the inbox now, how that stands when the time is up."""
        began = time.monotonic()
        try:
            return await method(request, caller)
        except Asked as e:
            ask = e.ask
        timeout = number(request.get("timeout"), "a timeout")
        item = await self._decided(ask, timeout, caller)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        return await self._told(item, caller, left)

    async def _told(self, item: Json, caller: Caller, left: float | None) -> Json:
        stands = item["stands"]
        if stands["op"] == "exec":
            known = {"session": item["session"], "exec_id": stands["exec_id"]}
            return await self.op_exec_result({**known, "wait": True, "timeout": left}, caller)
        if not stands.get("done"):
            return pending(item)
        await self.standing.told(item["id"])
        if stands["op"] != "run":
            done: Json = stands["outcome"]
            return done
        session = self._started_by(stands["run"])
        if session is None:
            raise HoldfastError("conflict", "what was started was removed again", "start it anew")
        return await self._view(session, full=True)

    def _started_by(self, run: str) -> Session | None:
        return next((s for s in self.registry.sessions.values() if s.manifest.get("request") == run), None)

    # -- carrying out

    async def _carry_out(self, item: Json) -> Json | None:
        """What a yes allows. What is returned is kept, for the asker; of a command and a start nothing need be."""
        stands = item["stands"]
        request: Json = stands["request"]
        if stands["op"] == "exec" and await self._was_typed(item):
            return None
        if stands["op"] == "run" and self._started_by(stands["run"]) is not None:
            return None
        caller = self.daemon.identities.again(stands["as"])
        if stands["as"].get("door"):
            caller = DoorCaller(caller, self.registry.find(stands["as"]["door"], lambda s: True))
        caller.approved = item["id"]
        if stands["op"] == "send":
            if stands.get("begun"):
                raise HoldfastError(
                    "conflict", f"the host died while it typed what {item['id']} allowed; it may not have been typed",
                    "look at the session before you ask again",
                )  # fmt: skip
            await self.desk.inbox.amend(item["id"], {"begun": True})
            stands["begun"] = True
        reply = await self.dispatch(request, caller)
        return dict(reply.value["ok"]) if stands["op"] == "send" else None

    async def _was_typed(self, item: Json) -> bool:
        """Whether the command has begun: by its record, and where a host died over it, by what the keeper typed."""
        session = self.registry.sessions.get(item["session"])
        if session is None:
            raise HoldfastError("conflict", f"{item['session_name']} was removed", "start it anew")
        exec_id = item["stands"]["exec_id"]
        record = self.execs.record(session, exec_id)
        if record is None or record.get("void"):
            return False
        if record["start"] is None and await self.desk.typed(session, exec_id) is False:
            self.execs.void(session, exec_id)
            return False
        return True
