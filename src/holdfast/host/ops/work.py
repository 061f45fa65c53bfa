"""Durable work over the host's socket: the home's SQLite file has one writer, this process."""

from __future__ import annotations

import asyncio
import os
from functools import cached_property
from typing import Any

from ...model.errors import HoldfastError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...work.service import Work
    from ..daemon import Daemon
    from ..identity import Caller

Json = dict[str, Any]
_STORES_MAX = 16  # files open at once: each has two threads and two connections
_CLOSE_S = 5.0  # a disk that hangs does not keep the daemon from leaving: what was acknowledged is on it


class WorkOps:
    """`work {call, args, store}`: a call of the work plane by name. Nothing is opened before the first one."""

    daemon: Daemon

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
        # Who acts is what the host knows, not what the caller says.
        return await work.call(str(request.get("call")), **{**args, "by": caller.name})

    async def _open(self, url: object) -> Work:
        wanted = f"sqlite:///{self.daemon.home.work_db}" if url is None else self._elsewhere(str(url))
        opening = self._works.get(wanted)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            if len(self._works) >= _STORES_MAX:
                raise HoldfastError("busy", f"{_STORES_MAX} stores are open already", "hold down, then again")
            opening = self._works[wanted] = asyncio.get_running_loop().create_task(_open_work(wanted))
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


async def _open_work(url: str) -> Work:
    from ...store.open import open_store
    from ...work.service import Work

    return Work(await open_store(url))
