"""Durable work over the host's socket: the home's SQLite file has one writer, this process."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import cached_property, partial
from typing import Any

from ...model.errors import HoldfastError, invalid
from ...model.work import check_word
from .. import evidence, parked, rewriting
from ..news import TASKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...work.near import NearWork
    from ...work.service import Work
    from ..daemon import Daemon
    from ..desk import Desk
    from ..identity import Caller
    from ..operators import Operators
    from ..registry import Registry
    from ..server import Peer

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")
_STORES_MAX = 16  # files open at once: each has two threads and two connections
_REPORTING = frozenset({"task_verified", "task_done"})  # calls that say how a verification ended
_TASKS_CHANGE = frozenset({
    "project_init", "project_edit", "task_add", "task_contract", "task_start", "task_next", "task_verified",
    "task_done", "task_fail", "task_block", "task_unblock", "task_pause", "task_retry", "task_cancel", "begin_run",
    "run_end",
})  # fmt: skip
_PARKING = frozenset({"run_park", "run_retry", "run_end", "step_settle", "task_cancel"})
_CLOSE_S = 5.0  # a disk that hangs does not keep the daemon from leaving: what was acknowledged is on it


class WorkOps:
    """`work {call, args, store}`: a call of the work plane by name. Nothing is opened before the first one."""

    daemon: Daemon
    registry: Registry
    desk: Desk
    operators: Operators

    def _ruled(self, caller: Caller) -> list[Json]:
        raise NotImplementedError

    @cached_property
    def _works(self) -> dict[str, asyncio.Task[Work]]:
        return {}

    async def op_work(self, request: Json, caller: Caller) -> Any:
        args = request.get("args")
        if not isinstance(args, dict):
            raise invalid("a work call needs its arguments", 'send {"call": NAME, "args": {…}}')
        if request.get("call") == "work_prune":
            caller.require("stop", None)  # it is evidence: not for somebody with a few sessions to forget
        work = await self._open(request.get("store"))
        if request.get("call") in _REPORTING and args.get("results") and self._ruled(caller)[0]["kind"] != "human":
            named = {k: args[k] for k in ("task", "project", "cwd") if k in args}
            shown = await work.call("task_show", **named)
            await asyncio.to_thread(evidence.check, self.registry, args["results"], shown)
        actors = self._ruled(caller)
        if request.get("call") in rewriting.CALLS and actors[0]["kind"] != "human":
            await rewriting.check(work, request["call"], args, actors, self.desk.gate, self._is_persons)
        # Who acts is what the host knows, not what the caller says.
        answer = await work.call(str(request.get("call")), **{**args, "by": caller.name})
        if str(request.get("call")) in _TASKS_CHANGE:
            self.daemon.news.note(TASKS)
        if request.get("store") is None and _parks(str(request.get("call")), answer):
            await self._follow_parked(work)
        return answer

    async def op_parked(self, request: Json, caller: Caller) -> None:
        """What a worker sees in a store on a server, which is written past this host."""
        store = check_word("a store", request.get("store"))
        await self.desk.parked.follow(store, parked.checked(request.get("runs")), caller.actor)

    async def look_for_parked(self) -> None:
        """In the home's store, where there is one. One that cannot be read keeps nobody from the rest of the inbox."""
        try:
            if await asyncio.to_thread(os.path.exists, self.daemon.home.work_db):
                await self._follow_parked(await self._open(None))
        except HoldfastError as e:
            log.warning("parked runs are not known: %s", e.line())

    async def _follow_parked(self, work: Work) -> None:
        await self.desk.parked.follow(parked.HOME, await work.call("run_parked"))

    def _is_persons(self, name: str) -> bool:
        """Whether what is signed with this name is a person's: whoever is not known here as another may be one."""
        return not any(o.name == name and o.kind != "human" for o in self.operators.by_id.values())

    # -- on a lane (host/lanes.py) -----------------------------------------------------------------------------------

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
        url = request.get("store")
        near = self._nears.get(self._home_store if url is None else str(url))
        return near if near is not None and request.get("call") in near.calls else None

    @cached_property
    def _home_store(self) -> str:
        return f"sqlite:///{self.daemon.home.work_db}"

    @cached_property
    def _nears(self) -> dict[str, NearWork]:
        return {}

    def _lay(self, url: str, opening: asyncio.Task[Work]) -> None:
        """A store was opened: threads may use it as well."""
        if opening.cancelled() or opening.exception() is not None:
            return
        from ...work.near import NearWork, growing

        work = opening.result()
        store: Any = work.store
        if hasattr(store, "write_now"):
            self._nears[url] = NearWork(store, work.by, growing(work, asyncio.get_running_loop()))

    async def _open(self, url: object) -> Work:
        wanted = self._home_store if url is None else self._elsewhere(str(url))
        opening = self._works.get(wanted)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            if len(self._works) >= _STORES_MAX:
                raise HoldfastError("busy", f"{_STORES_MAX} stores are open already", "hold down, then again")
            opening = self._works[wanted] = asyncio.get_running_loop().create_task(_open_work(wanted))
            opening.add_done_callback(partial(self._lay, wanted))
        try:
            return await asyncio.shield(opening)
        except HoldfastError:
            self._works.pop(wanted, None)
            raise

    def _elsewhere(self, url: str) -> str:
        """A store that was named; the host's own files are nobody's store."""
        home = os.path.realpath(self.daemon.home.path)
        path = os.path.realpath(url.removeprefix("sqlite:///"))
        if path != os.path.join(home, "work.db") and os.path.commonpath([home, path]) == home:
            raise invalid("that file is the host's own", "name a file outside of the home")
        return url

    async def close_work(self) -> None:
        opened = [t.result() for t in self._works.values() if t.done() and not t.cancelled() and not t.exception()]
        for work in opened:
            try:
                await asyncio.wait_for(work.aclose(), _CLOSE_S)  # checkpoints under way
                await asyncio.wait_for(work.store.close(), _CLOSE_S)
            except TimeoutError:
                pass


def _parks(call: str, answer: Any) -> bool:
    """Whether a call may have parked a run, or freed one. A worker's look for work does where it found something."""
    return call in _PARKING or (call == "run_claim" and bool(answer["run"] or answer["parked"]))


async def _open_work(url: str) -> Work:
    from ...store.open import open_store
    from ...work.service import Work

    return Work(await open_store(url))
