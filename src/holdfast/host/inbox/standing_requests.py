"""Requests that outlive their call: over MCP a call has to end long before a person has answered.

    a call that needs a yes ──> an item that keeps the request ──> the call returns `waiting_for_approval`
                                     │ yes                         the same call again finds the same item
                                     └──> the host carries the request out, once, and keeps what it came to
                                          until the asker has been told

The request is kept with the id that its effect is known by (a command's exec id, a start's request id). So a host that
finds one approved and not carried out, because the last host died in between, carries it out; and one that was carried
out is not carried out again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ...model import ids, limits
from ...model.errors import HoldfastError, from_dict, invalid
from ...model.times import rfc3339
from .approval_gate import refused
from .items import Inbox

Json = dict[str, Any]
Make = Callable[[], Awaitable[Json | None]]
log = logging.getLogger("holdfast.host")

_OF_THE_CALL = frozenset(
    {"ancestor", "asked_s_ago", "brief", "exec_id", "request", "standing", "start_only", "timeout", "why"}
)
_FIRST_S, _MOST_S = 0.025, 0.25  # between two tries to begin in a shell that is busy: invariant 11, a pending exec


class Asked(Exception):
    """Raised through an operation whose request now stands in the inbox."""

    def __init__(self, ask: str) -> None:
        super().__init__(ask)
        self.ask = ask


class Standing:
    """One per host. `carry_out(item)` does what a yes allows, and returns what is to be kept of the outcome."""

    def __init__(
        self, inbox: Inbox, carry_out: Callable[[Json], Awaitable[Json | None]], clock: Callable[[], float] = time.time
    ) -> None:
        self._inbox, self._carry_out, self._clock = inbox, carry_out, clock
        self._by_key: dict[str, str] = {}  # the item of each request whose asker has not heard the end of it
        self._by_exec: dict[tuple[str, str], str] = {}  # the same by the session and id of a command
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asking = asyncio.Lock()  # two calls with the same arguments at once make one item

    async def begin(self) -> None:
        """Take up what the last host left: open items, and what was approved and not carried out."""
        for item in await self._inbox.standing():
            stands = item["stands"]
            if stands.get("told") or self._clock() > self._kept_until(item):
                continue
            self._remember(item["id"], stands)
            if item["state"] == "open" or not stands.get("done"):
                self._take_up(item["id"])

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()

    # -- asking

    async def ask(self, stands: Json, make: Make) -> str | None:
        """The item that asks for this request already, or the one that `make` makes; None where no rule wants one. A
        caller that leaves meanwhile leaves a whole item."""
        return await asyncio.shield(asyncio.ensure_future(self._ask(stands, make)))

    async def _ask(self, stands: Json, make: Make) -> str | None:
        async with self._asking:
            known = await self._known(stands["key"])
            if known is None:
                item = await make()
                if item is None:
                    return None
                known = str(item["id"])
                self._take_up(known)
            self._remember(known, stands)
            return known

    async def _known(self, key: str) -> str | None:
        ask = self._by_key.get(key)
        if ask is None or ask in self._tasks:
            return ask
        try:
            item = await self._inbox.find(ask)
        except HoldfastError:  # so many came after it that it is no longer kept
            item = None
        if item is not None and self._clock() <= self._kept_until(item):
            return ask
        self._forget(ask)
        return None

    @staticmethod
    def _kept_until(item: Json) -> float:
        """An asker that comes later than this for the outcome means another run, which a person is asked about."""
        if item["state"] == "open":
            return float("inf")
        until: float = item["answered_at"] + max(item["expires_at"] - item["created_at"], limits.OUTCOME_KEPT_S)
        return until

    def _remember(self, ask: str, stands: Json) -> None:
        self._by_key[stands["key"]] = ask
        if stands["exec_id"]:  # a call that found the item goes by an id of its own, too
            self._by_exec[stands["request"]["session"], stands["exec_id"]] = ask

    def _forget(self, ask: str) -> None:
        self._by_key = {key: found for key, found in self._by_key.items() if found != ask}
        self._by_exec = {key: found for key, found in self._by_exec.items() if found != ask}

    # -- carrying out

    def _take_up(self, ask: str) -> None:
        self._tasks[ask] = task = asyncio.get_running_loop().create_task(self._carry(ask))
        task.add_done_callback(lambda done: self._ended(ask, done))

    def _ended(self, ask: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(ask) is task and not (task.cancelled() or task.exception()):
            del self._tasks[ask]  # what it came to is in the item
        elif not task.cancelled() and not isinstance(task.exception(), HoldfastError):
            log.error("what %s allowed: %r", ask, task.exception())

    async def _carry(self, ask: str) -> None:
        item = await self._inbox.settled(ask)
        told: Json = {"done": True, "request": {"session": item["session"]}}  # the rest of it is not needed any more
        try:
            if item["state"] != "answered":
                raise refused(item)
            told["outcome"] = await self._begun(item)
        except HoldfastError as e:
            told["error"] = e.as_dict()
        await self._inbox.amend_request(ask, told)

    async def _begun(self, item: Json) -> Json | None:
        """A yes is good for as long as the question would have been: also for a shell that is busy, or a host that
        was away."""
        until = item["answered_at"] + item["expires_at"] - item["created_at"]
        delay = _FIRST_S
        while self._clock() <= until:
            try:
                return await self._carry_out(item)
            except HoldfastError as e:
                if e.code != "busy" or item["stands"]["op"] != "exec" or self._clock() + delay > until:
                    raise
            await asyncio.sleep(delay)
            delay = min(delay * 2, _MOST_S)
        raise HoldfastError("not_allowed", f"{item['id']} was approved and could not begin in time", "ask again")

    # -- what it came to

    async def decided(self, ask: str, timeout: float | None) -> Json:
        """The item once it was carried out, or as it is when the time is up; raises where it came to nothing."""
        task = self._tasks.get(ask)
        if task is not None:
            await asyncio.wait({task}, timeout=timeout)
            if task.done() and not task.cancelled() and task.exception() is not None:
                self._take_up(ask)  # the ledger's disk: it is tried again, and what was done is not done twice
                task.result()
        item = await self._inbox.find(ask)
        if item["stands"].get("error"):
            raise from_dict(item["stands"]["error"])
        return item

    async def decided_for(self, ask: str, timeout: float | None, everyone: tuple[str, ...]) -> Json:
        """The same for an asker (those who may be behind it) that is told of a no with this very answer."""
        try:
            return await self.decided(ask, timeout)
        except HoldfastError:
            if ((await self._inbox.find(ask))["asker"] or {}).get("operator") in everyone:
                await self.told(ask)
            raise

    async def begun_as(self, session: str, exec_id: str) -> str:
        """The id that a command runs under, once it was allowed to."""
        ask = self.of_exec(session, exec_id)
        return exec_id if ask is None else str((await self.decided(ask, None))["stands"]["exec_id"])

    async def told(self, ask: str) -> None:
        """The asker has heard the end of it: the same call from now on is another request."""
        if ask in self._by_key.values():
            self._forget(ask)
            self._tasks.pop(ask, None)
            await self._inbox.amend_request(ask, {"told": True})

    def of_exec(self, session: str, exec_id: str) -> str | None:
        """The item of a command in this session whose end its asker has not heard."""
        return self._by_exec.get((session, exec_id))

    def waits(self, ask: str | None) -> bool:
        """Whether what an item asks for has not begun and may yet."""
        return ask in self._tasks


def pending(item: Json) -> Json:
    """What a call is told whose request a person has not answered yet."""
    state = "waiting_for_approval" if item["state"] == "open" else "running"
    return {"state": state, "ask": item["id"], "expires_at": rfc3339(item["expires_at"])}


def kept(request: Json, who: Json, session: Json | None) -> Json:
    """A request as its item keeps it, to be carried out as `who` made it. `key` is the same for the same request of
    the same operator: what only this call has (its ids, its time, its reason) does not count."""
    op, exec_id, run = request["op"], None, None
    whole = {k: v for k, v in request.items() if k not in _OF_THE_CALL and v is not None}
    if session is not None:
        whole["session"] = session["session"]  # by its id: a name may change hands meanwhile
    same = json.dumps([who, (session or {}).get("generation"), whole], sort_keys=True)
    if op == "exec":
        exec_id = whole["exec_id"] = str(request.get("exec_id") or ids.new("exe_"))
        whole["start_only"] = True
        same += exec_id if request.get("step") else ""  # a step has its command under this id, and asks for that
    else:  # the id by which it is known whether it was done
        whole["request"] = str(request.get("request") or ids.new("req_"))
        run = whole["request"] if op == "run" else None
    if "why" in request:
        whole["why"] = request["why"]
    if len(same) > limits.STANDING_BYTES_MAX:
        raise invalid(
            f"a request of {len(same)} bytes needs approval, and is too large to be kept until a person answers",
            f"at most {limits.STANDING_BYTES_MAX}: a smaller environment, or the command in a file",
        )
    key = hashlib.sha256(same.encode("utf-8", "surrogatepass")).hexdigest()
    return {"key": key, "op": op, "request": whole, "as": who, "exec_id": exec_id, "run": run}
