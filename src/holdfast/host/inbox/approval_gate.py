"""The gate before what an agent runs: where a rule of config.toml covers it, a human says yes first.

What was shown is what runs: the request waits here, whole, and goes on with the very bytes that were looked at. The
same request sent again (a host died in between) finds its item and its answer, as long as it still asks for the same.
A yes is used once: it is marked before what it allows begins.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ...model import ids
from ...model.config_toml import Settings
from ...model.errors import HoldfastError
from ...model.inbox import approval_rules
from .items import Inbox

Json = dict[str, Any]
Used = Callable[[], Awaitable[bool]]  # whether what a yes allowed has begun


class Gate:
    """`settings()` is the configuration as it is now, `stopping()` whether the host itself is on its way out."""

    def __init__(self, inbox: Inbox, settings: Callable[[], Settings], stopping: Callable[[], bool]) -> None:
        self._inbox, self._settings, self._stopping = inbox, settings, stopping

    async def approve(
        self,
        verb: str,
        actor: Json,
        name: str,
        command: bytes,
        *,
        session: Json | None = None,
        detail: Json | None = None,
        request: str | None = None,
        others: Sequence[Json] = (),
        used: Used | None = None,
    ) -> Json | None:
        """Returns when it may go on (with the item, where one was needed), raises `not_allowed` when it may not. `used`
        is asked where a yes was marked: a host may have died before what it allows began."""
        item = await self.ask(
            verb, actor, name, command, session=session, detail=detail, request=request, others=others
        )
        if item is None:
            return None
        item = await self.held(item)
        if item["state"] != "answered":
            raise refused(item)
        unspent = await self._inbox.spend(item["id"])  # before its effect: a yes that is used is not used again
        if not unspent and (used is None or await used()):
            raise HoldfastError("conflict", f"what {item['id']} allowed was begun already", "make a new request")
        return item

    async def ask(
        self,
        verb: str,
        actor: Json,
        name: str,
        command: bytes,
        *,
        session: Json | None = None,
        detail: Json | None = None,
        request: str | None = None,
        others: Sequence[Json] = (),
        stands: Json | None = None,
    ) -> Json | None:
        """The item that asks a person for this; None where no rule wants one. `others` may be behind the request as
        well as `actor`: whomever the strictest rule covers is the asker. `stands` is the request, where the item
        outlives the call."""
        found = self._rule(verb, (actor, *others), name, command)
        if found is None:
            return None
        rule, actor = found
        shown = approval_rules.check_length(approval_rules.visible(command.decode("utf-8", "surrogateescape")))
        told = {"verb": verb, "rule": rule.pattern, **(detail or {})}
        told["sha256"] = hashlib.sha256(command + repr(sorted((detail or {}).items())).encode()).hexdigest()
        item = await self._inbox.by_request(request) if request else None
        if item is not None and item["detail"].get("sha256") != told["sha256"]:
            raise HoldfastError("conflict", "this request was made before, for another command", "make a new one")
        if item is None:
            ask = ids.new("ask_")
            try:
                item = await self._inbox.add(
                    "approval",
                    session=session,
                    asker=actor,
                    text=shown,
                    detail=told,
                    timeout_s=rule.timeout_s,
                    request=request,
                    ask=ask,
                    more={"stands": stands} if stands else None,
                )
            except asyncio.CancelledError:  # while it was written: it is there now
                await self.left(ask)
                raise
        return item

    async def held(self, item: Json) -> Json:
        """The item once it is over; it is over, too, when whoever waits for it has left."""
        try:
            return await self._inbox.settled(item["id"])
        except BaseException:
            await self.left(item["id"])
            raise

    async def left(self, ask: str, reason: str | None = None) -> None:
        if not self._stopping():  # the asker left: nothing would run any more
            await self._inbox.vanish(lambda i: i["id"] == ask, reason)

    def _rule(
        self, verb: str, actors: Sequence[Json], name: str, command: bytes
    ) -> tuple[approval_rules.Rule, Json] | None:
        """The rule that a yes is needed for, and whom it covers: of several the one that waits least for it."""
        agents = [actor for actor in actors if actor["kind"] != "human"]
        if not agents:
            return None
        settings = self._settings()
        self._check(settings)
        found = ((approval_rules.needed(settings.rules, verb, a["kind"], name, command), a) for a in agents)
        return min(((r, a) for r, a in found if r is not None), key=lambda one: one[0].timeout_s, default=None)

    @staticmethod
    def _check(settings: Settings) -> None:
        """A rule that cannot be read might have been about this."""
        if settings.broken is not None:
            raise HoldfastError("not_allowed", f"nothing can be approved: {settings.broken.message}", "mend it first")

    def check_typing(self, actor: Json, name: str, others: Sequence[Json] = ()) -> None:
        """Refuse a channel to type through where what is typed would need approval."""
        for who in (actor, *others):
            if who["kind"] == "human":
                continue
            settings = self._settings()
            self._check(settings)
            if approval_rules.typing_refused(settings.rules, who["kind"], name):
                raise HoldfastError(
                    "not_allowed",
                    f"what {who['name']} ({who['kind']}) types into {name} needs approval first",
                    "use exec or send, which ask for it; watching (attach -r) is free",
                )

    def check_rename(self, actor: Json, old: str, new: str, others: Sequence[Json] = ()) -> None:
        """A name is what a rule goes by: nobody whom it covers gives the session another one."""
        for kind in {who["kind"] for who in (actor, *others)} - {"human"}:
            settings = self._settings()
            self._check(settings)
            for rule in settings.rules:
                if any(rule.covers(v, kind, old) and not rule.covers(v, kind, new) for v in rule.verbs):
                    raise HoldfastError(
                        "not_allowed",
                        f"{old} is under an approval rule that goes by its name",
                        "ask a human to rename it",
                    )


def refused(item: Json) -> HoldfastError:
    by = item["answered_by"]
    why = {
        "denied": f"{by['name']} ({by['kind']}) said no" if by else "it was denied",
        "expired": "nobody approved it in time",
        "gone": "it is no longer wanted",
    }[item["state"]]
    return HoldfastError("not_allowed", f"{why} ({item['id']})", "change the command, or ask: hold ask")
