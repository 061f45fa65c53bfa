"""What an asyncio worker needs beside its calls: a heartbeat task, and PostgreSQL in this loop. Twin of work_io."""

from __future__ import annotations

import asyncio
import inspect
import weakref

from ..model.errors import HoldfastError
from ..model.work import Fenced
from .work_io import user_name, wants_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from .aio import AsyncHost

sleep = asyncio.sleep


async def invoke(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], step: object) -> Any:
    """The user's function. A plain one runs on a thread, so that it does not stop the heartbeat."""
    extra = {"step": step} if wants_step(fn) else {}
    if inspect.iscoroutinefunction(fn):
        return await fn(*args, **kwargs, **extra)
    value = await asyncio.to_thread(fn, *args, **kwargs, **extra)
    return await value if inspect.isawaitable(value) else value


def twin(host: AsyncHost) -> AsyncHost:
    """The same: requests of one event loop share a host object."""
    return host


def untwin(host: AsyncHost) -> None:
    """It is the caller's own, and goes on."""


class AsyncBeat:
    """Renews a lease until it is stopped, lost, or its run is forgotten."""

    def __init__(
        self, run: object, renew: Callable[[], Awaitable[None]], every_s: float, left: Callable[[], None]
    ) -> None:
        self.lost: Fenced | None = None
        self._task = asyncio.get_running_loop().create_task(self._loop(renew, every_s))
        weakref.finalize(run, self.stop)

    async def _loop(self, renew: Callable[[], Awaitable[None]], every_s: float) -> None:
        while True:
            await asyncio.sleep(every_s)
            try:
                await renew()
            except Fenced as e:
                self.lost = e
                return
            except HoldfastError:
                pass  # the host or the database is away: the next beat tries again, and the lease has room for two

    def stop(self) -> None:
        if not self._task.get_loop().is_closed():
            self._task.cancel()


class AsyncDirect:
    """A PostgreSQL work plane, written by this process."""

    def __init__(self, url: str, operator: str | None, cache: str | None = None) -> None:
        self._url, self._by, self._cache = url, operator or user_name(), cache
        self._opening: asyncio.Task[Any] | None = None

    async def call(self, name: str, args: dict[str, Any]) -> Any:
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._opening = asyncio.get_running_loop().create_task(self._open())
        work = await asyncio.shield(self._opening)
        return await work.call(name, **args)

    async def _open(self) -> Any:
        from ..store.open import open_store
        from ..work.service import Work

        return Work(await open_store(self._url), self._by, self._cache)

    def close(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None and opening.done() and not opening.cancelled() and not opening.exception():
            opening.result().store.terminate()
