"""The one store that this host has open: the home's setting. Opened with the first call, swapped between two calls."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from ...model.errors import HoldfastError
from .store_setting import StoreSetting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...work.blocking_calls import NearWork
    from ...work.service import Work

_CLOSE_S = 5.0  # a disk that hangs does not keep the daemon from leaving: what was acknowledged is on it


class WorkStore:
    """`work()` for the event loop; `near` for threads, where the store is open."""

    def __init__(self, setting: StoreSetting) -> None:
        self._setting = setting
        self._opening: asyncio.Task[Work] | None = None
        self._under_way = 0
        self._idle, self._swapping = asyncio.Event(), False
        self._idle.set()
        self.near: NearWork | None = None

    async def work(self) -> Work:
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            made = open_work(self._setting.url, self._setting.cache)
            opening = self._opening = asyncio.get_running_loop().create_task(made)
            opening.add_done_callback(self._lay)
        return await asyncio.shield(opening)

    def _lay(self, opening: asyncio.Task[Work]) -> None:
        """A store was opened: threads may use it as well."""
        if opening is not self._opening or opening.cancelled() or opening.exception() is not None:
            return
        from ...work.blocking_calls import NearWork, growing

        work = opening.result()
        self.near = NearWork(work.store, work.by, growing(work, asyncio.get_running_loop()))

    async def used(self) -> bool:
        """Whether there can be anything in it: it is open, or a file that is there."""
        path = self._setting.url.removeprefix("sqlite:///")
        return self._opening is not None or await asyncio.to_thread(os.path.exists, path)

    @contextlib.asynccontextmanager
    async def call(self) -> AsyncIterator[Work]:
        """The store, for one call: it is not swapped meanwhile."""
        if self._swapping:
            raise HoldfastError("busy", "this home's store is being changed", "try again")
        self._under_way += 1
        self._idle.clear()
        try:
            yield await self.work()
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    @contextlib.asynccontextmanager
    async def alone(self) -> AsyncIterator[Work]:
        """The store while no other call is made; refused while a lease is held there, whose holder would be alone with
        what it writes."""
        from ...work.runs.lease import holder

        if self._swapping:
            raise HoldfastError("busy", "this home's store is being changed", "try again")
        self._swapping, self.near = True, None
        try:
            await self._idle.wait()
            work = await self.work()
            held = await work.store.read(holder)
            if held is not None:
                words = f"a run is held by {held}"
                raise HoldfastError("busy", words, "stop the workers first, or let the lease run out")
            yield work
        finally:
            self._swapping = False
            if self._opening is not None and self._opening.done():
                self._lay(self._opening)

    async def swap(self, opened: asyncio.Task[Work]) -> None:
        """Use another one from now on; within `alone`."""
        before, self._opening, self.near = self._opening, opened, None
        await _close(before)

    async def close(self) -> None:
        await _close(self._opening)


async def _close(opening: asyncio.Task[Work] | None) -> None:
    if opening is None or not opening.done() or opening.cancelled() or opening.exception():
        return
    work = opening.result()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(work.aclose(), _CLOSE_S)  # checkpoints under way
        await asyncio.wait_for(work.store.close(), _CLOSE_S)


async def open_work(url: str, cache: str | None) -> Work:
    from ...store.memory_cache import open_cache
    from ...store.open import open_store
    from ...work.service import Work

    if cache is not None:
        await open_cache(cache).close()  # a URL that cannot be one is told now
    return Work(await open_store(url), cache=cache)
