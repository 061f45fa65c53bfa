"""The one store that this host has open: the home's setting. Opened with the first call, swapped between two calls."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from ...model.errors import HoldfastError
from ...model.work import store_setting
from ...version import VERSION
from .store_setting import StoreSetting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...work.blocking_calls import NearWork
    from ...work.service import Work
    from .heartbeat import Heartbeat

log = logging.getLogger("holdfast.host")
_CLOSE_S = 5.0  # a disk that hangs does not keep the daemon from leaving: what was acknowledged is on it


class Opened(NamedTuple):
    """A store that is open, and known there as this host's."""

    work: Work
    beat: Heartbeat


def _failed(opening: asyncio.Task[Opened]) -> bool:
    return opening.cancelled() or opening.exception() is not None


class WorkStore:
    """`work()` for the event loop; `near` for threads, where the store is open."""

    def __init__(
        self, setting: StoreSetting, host: str, *, news: Callable[[], None], replaced: Callable[[], None]
    ) -> None:
        """`news`: another host has changed tasks; `replaced`: another daemon of this home has opened its store."""
        self._setting, self._host = setting, host
        self._news, self._replaced = news, replaced
        self._opening: asyncio.Task[Opened] | None = None
        self._under_way = 0
        self._idle, self._swapping = asyncio.Event(), False
        self._idle.set()
        self.near: NearWork | None = None

    async def work(self) -> Work:
        opening = self._opening
        if opening is None or (opening.done() and _failed(opening)):
            opening = self._opening = self.opening(self._setting.url, self._setting.cache)
            opening.add_done_callback(self._lay)
        return (await asyncio.shield(opening)).work

    def opening(self, url: str, cache: str | None) -> asyncio.Task[Opened]:
        return asyncio.get_running_loop().create_task(self._open(url, cache))

    async def _open(self, url: str, cache: str | None) -> Opened:
        """Open it, as this host's."""
        from ...store.memory_cache import open_cache
        from ...store.open import open_store
        from ...work.service import Work
        from .heartbeat import Heartbeat

        if cache is not None:
            await open_cache(cache).close()  # a URL that cannot be one is told now
        store = await open_store(url, self._host)
        try:
            shared = store_setting.is_server(url)
            beat = await Heartbeat.begin(store, os.uname().nodename[:64], VERSION, self._replaced if shared else None)
        except BaseException:
            await store.close()
            raise
        loop = asyncio.get_running_loop()
        store.listen(lambda: _called(loop, self._news))
        return Opened(Work(store, cache=cache), beat)

    def _lay(self, opening: asyncio.Task[Opened]) -> None:
        """A store was opened: threads may use it as well."""
        if opening is not self._opening or _failed(opening):
            return
        from ...work.blocking_calls import NearWork, growing

        work = opening.result().work
        self.near = NearWork(work.store, work.by, growing(work, asyncio.get_running_loop()))

    def granted(self) -> None:
        """A lease may have been given: on a shared store this host is to say that it is there."""
        if self._opening is not None and self._opening.done() and not _failed(self._opening):
            self._opening.result().beat.nudge()

    async def held(self, *, give_back: bool) -> list[str]:
        """Workers that hold leases of this host; given back, others may go on at once. A store that does not answer
        keeps no host from leaving."""
        from ...work.runs import hosts

        try:
            async with asyncio.timeout(_CLOSE_S):
                if not (await self.used() or (give_back and store_setting.is_server(self._setting.url))):
                    return []
                store = (await self.work()).store
                return await store.write(lambda: hosts.leases(give_back))
        except (HoldfastError, TimeoutError) as e:
            log.warning("which workers hold leases is not known: %s", e)
            return []

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

    async def swap(self, opened: asyncio.Task[Opened]) -> None:
        """Use another one from now on; within `alone`."""
        before, self._opening, self.near = self._opening, opened, None
        await _close(before)

    async def close(self) -> None:
        await _close(self._opening)


async def _close(opening: asyncio.Task[Opened] | None) -> None:
    if opening is None or not opening.done() or _failed(opening):
        return
    work, beat = opening.result()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(beat.close(), _CLOSE_S)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(work.aclose(), _CLOSE_S)  # checkpoints under way
        await asyncio.wait_for(work.store.close(), _CLOSE_S)


def _called(loop: asyncio.AbstractEventLoop, news: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # it has ended
        loop.call_soon_threadsafe(news)
