"""Durable work over the host's socket: the home's SQLite file has one writer, this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from ...api import checking
from ...api.operation import Operation, find
from ...model.errors import HoldfastError
from . import contract_guard, verification_evidence
from .store import WorkStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...work.blocking_calls import NearWork
    from ..inbox.inbox_host import Desk
    from ..operators.caller import Caller, Identities
    from ..operators.operators import Operators
    from ..server.connection import Peer
    from ..sessions.registry import Registry

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")
# Calls that may give a lease; and those that may where they are made by hand.
_GRANTING = frozenset({"begin_run", "run_claim", "task_start", "task_next"})
_GRANTING_BY_HAND = frozenset({"step_begin", "step_end", "step_fail", "checkpoint_save", "checkpoint_put", "run_end"})
_PARKED_LOOK_S = 2.0  # a server that does not answer keeps nobody from the rest of the inbox


class WorkCalls:
    """The calls of the work plane. Nothing is opened before the first one."""

    def __init__(
        self,
        store: WorkStore,
        desk: Desk,
        registry: Registry,
        operators: Operators,
        identities: Identities,
        confirmed: Callable[[], bool],
    ) -> None:
        self._store, self._desk, self._registry = store, desk, registry
        self._operators, self._identities, self._confirmed = operators, identities, confirmed

    async def answer(self, caller: Caller, request: Operation[Any]) -> Any:
        """One call; who acts is what the host knows, not what the caller says."""
        row, args = request.row, vars(request)
        if row.op == "task_next" and not self._confirmed():
            words = "this home came from a backup, and its backends run commands: none is given a task yet"
            raise HoldfastError("not_allowed", words, "look at hold backend ls, then hold restore --confirm")
        work, actors = await self._store.work(), caller.ruled
        if actors[0]["kind"] != "human":
            if args.get("results") and "tasks" in row.changes:  # it says how a verification ended
                named = {k: args[k] for k in ("task", "project", "cwd") if k in args}
                shown = await work.call("task_show", **named)
                await asyncio.to_thread(verification_evidence.check, self._registry, args["results"], shown)
            if row.approve == "contract":
                await contract_guard.check(work, row.op, args, actors, self._desk.gate, self._is_persons)
        async with self._store.call() as work:
            answer = await work.call(row.op, **args, by=caller.name)
        if row.op in _GRANTING or (row.op in _GRANTING_BY_HAND and args.get("epoch") is None):
            self._store.granted()
        if "parked" in row.changes and (row.op != "run_claim" or answer["run"] or answer["parked"]):
            await self.look_for_parked()
        return answer

    async def look_for_parked(self) -> None:
        """In the home's store, where it has anything. The rest of the inbox does not depend on that."""
        try:
            if not await self._store.used():
                return
            async with asyncio.timeout(_PARKED_LOOK_S), self._store.call() as work:
                found = await work.call("run_parked")
        except (HoldfastError, TimeoutError) as e:
            log.warning("parked runs are not known: %s", e)
            return
        await self._desk.parked.follow(found)

    def _is_persons(self, name: str) -> bool:
        """Whether what is signed with this name is a person's: whoever is not known here as another may be one."""
        return not any(o.name == name and o.kind != "human" for o in self._operators.by_id.values())

    # -- on a step thread (host/server/step_threads.py) ---------------------------------------------------------------

    def lane_takes(self, message: Json, peer: Peer) -> bool:
        """Whether a request is one that a thread can answer: who asks is known, and the store is open."""
        return peer.resolved and self._near(message) is not None

    def lane_answer(self, message: Json, peer: Peer) -> Json | None:
        """On a step thread. What is out of the ordinary is left to the loop, which refuses and journals."""
        near = self._near(message)
        worker = None if near is None else self._identities.worker(peer)
        if near is None or worker is None:
            return None
        try:
            request = checking.request(message)
            return {"ok": near.call_now(request.row.op, {**vars(request), "by": worker})}
        except HoldfastError as e:
            return {"error": e.as_dict()}
        except Exception as e:
            log.exception("work call %s failed", message.get("op"))
            words = f"internal error: {e!r}"
            return {"error": HoldfastError("internal", words, "please report it with host.log from the home").as_dict()}

    def _near(self, message: Json) -> NearWork | None:
        """The store for threads, where it is open and the operation is one for them."""
        op, near = message.get("op"), self._store.near
        kind = find(op) if isinstance(op, str) else None
        return near if kind is not None and kind.row.thread_ok else None

    async def close(self) -> None:
        await self._store.close()
