"""Durable work over the host's socket: the home's SQLite file has one writer, this process."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ...model.errors import HoldfastError, invalid
from ..change_feed.feed import TASKS
from . import contract_guard, verification_evidence
from .store import WorkStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...work.blocking_calls import NearWork
    from ..daemon import Daemon
    from ..inbox.inbox_host import Desk
    from ..operators.caller import Caller
    from ..operators.operators import Operators
    from ..server.connection import Peer
    from ..sessions.registry import Registry

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")
_REPORTING = frozenset({"task_verified", "task_done"})  # calls that say how a verification ended
_TASKS_CHANGE = frozenset(
    {
        "project_init",
        "project_edit",
        "task_add",
        "task_contract",
        "task_start",
        "task_next",
        "task_verified",
        "task_done",
        "task_fail",
        "task_block",
        "task_unblock",
        "task_pause",
        "task_retry",
        "task_cancel",
        "begin_run",
        "run_end",
    }
)
_PARKING = frozenset({"run_park", "run_retry", "run_end", "step_settle", "task_cancel"})
_PARKED_LOOK_S = 2.0  # a server that does not answer keeps nobody from the rest of the inbox


class WorkOps:
    """`work {call, args}`: a call of the work plane by name. Nothing is opened before the first one."""

    daemon: Daemon
    registry: Registry
    desk: Desk
    operators: Operators

    work_store: WorkStore

    def _ruled(self, caller: Caller) -> list[Json]:
        raise NotImplementedError

    async def op_work(self, request: Json, caller: Caller) -> Any:
        args = request.get("args")
        if not isinstance(args, dict):
            raise invalid("a work call needs its arguments", 'send {"call": NAME, "args": {…}}')
        if request.get("call") == "work_prune":
            caller.require("stop", None)  # it is evidence: not for somebody with a few sessions to forget
        if request.get("call") == "task_next" and not self.daemon.confirmed:
            words = "this home came from a backup, and its backends run commands: none is given a task yet"
            raise HoldfastError("not_allowed", words, "look at hold backend ls, then hold restore --confirm")
        if request.get("store") is not None:
            raise invalid("no request names a store: it is the home's setting", "hold status shows it")
        work = await self.work_store.work()
        if request.get("call") in _REPORTING and args.get("results") and self._ruled(caller)[0]["kind"] != "human":
            named = {k: args[k] for k in ("task", "project", "cwd") if k in args}
            shown = await work.call("task_show", **named)
            await asyncio.to_thread(verification_evidence.check, self.registry, args["results"], shown)
        actors = self._ruled(caller)
        if request.get("call") in contract_guard.CALLS and actors[0]["kind"] != "human":
            await contract_guard.check(work, request["call"], args, actors, self.desk.gate, self._is_persons)
        # Who acts is what the host knows, not what the caller says.
        async with self.work_store.call() as work:
            answer = await work.call(str(request.get("call")), **{**args, "by": caller.name})
        if str(request.get("call")) in _TASKS_CHANGE:
            self.daemon.news.note(TASKS)
        if _parks(str(request.get("call")), answer):
            await self.look_for_parked()
        return answer

    async def look_for_parked(self) -> None:
        """In the home's store, where it has anything. The rest of the inbox does not depend on that."""
        try:
            if not await self.work_store.used():
                return
            async with asyncio.timeout(_PARKED_LOOK_S), self.work_store.call() as work:
                found = await work.call("run_parked")
        except (HoldfastError, TimeoutError) as e:
            log.warning("parked runs are not known: %s", e)
            return
        await self.desk.parked.follow(found)

    def _is_persons(self, name: str) -> bool:
        """Whether what is signed with this name is a person's: whoever is not known here as another may be one."""
        return not any(o.name == name and o.kind != "human" for o in self.operators.by_id.values())

    # -- on a step thread (host/server/step_threads.py) ---------------------------------------------------------------

    def lane_takes(self, request: Json, peer: Peer) -> bool:
        """Whether a request is one that a thread can answer: who asks is known, and the store is open."""
        return request.get("op") == "work" and peer.resolved and self._near(request) is not None

    def lane_answer(self, request: Json, peer: Peer) -> Json | None:
        """On a lane's thread. Whatever is out of the ordinary is left to the loop, which refuses and journals."""
        args, call = request.get("args"), request.get("call")
        near = self._near(request) if request.get("op") == "work" else None
        if near is None or not isinstance(args, dict):
            return None
        worker = self.daemon.identities.worker(peer)
        if worker is None:
            return None
        args["by"] = worker  # who acts is what the host knows, not what the caller says
        try:
            return {"ok": near.call_now(str(call), args)}
        except HoldfastError as e:
            return {"error": e.as_dict()}
        except Exception as e:
            log.exception("work call %s failed", call)
            words = f"internal error: {e!r}"
            return {"error": HoldfastError("internal", words, "please report it with host.log from the home").as_dict()}

    def _near(self, request: Json) -> NearWork | None:
        """The store for threads, where it is open and the call is one for them."""
        near = None if "store" in request else self.work_store.near
        return near if near is not None and request.get("call") in near.calls else None

    async def close_work(self) -> None:
        await self.work_store.close()


def _parks(call: str, answer: Any) -> bool:
    """Whether a call may have parked a run, or freed one. A worker's look for work does where it found something."""
    return call in _PARKING or (call == "run_claim" and bool(answer["run"] or answer["parked"]))
