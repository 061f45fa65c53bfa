"""What an asyncio worker needs beside its calls: a heartbeat task. Twin of thread_heartbeat."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import weakref

from ...model.errors import HoldfastError
from ...model.work.effects import Fenced
from ..steps_under_way import UnderWay, Unit
from .thread_heartbeat import wants_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from typing import Any, TypeVar

    from .._async.host import AsyncHost

    T = TypeVar("T")

sleep = asyncio.sleep


async def invoke(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], step: object, unit: Unit
) -> Any:
    """The user's function. A plain one runs on a thread, so that it does not stop the heartbeat."""
    extra = {"step": step} if wants_step(fn) else {}
    if inspect.iscoroutinefunction(fn):
        return await fn(*args, **kwargs, **extra)
    before, unit.firm = unit.firm, True
    call = functools.partial(contextvars.copy_context().run, fn, *args, **kwargs, **extra)
    ended = asyncio.get_running_loop().run_in_executor(None, call)
    while not ended.done():
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError:
            unit.left = True  # the event loop ends; a thread goes on all the same, and so does its step
    unit.firm = before
    value = ended.result()
    return await value if inspect.isawaitable(value) else value


async def attended(work: Callable[[Unit], Coroutine[Any, Any, T]]) -> T:
    """Run a unit in a task of its own. A caller that is cancelled cancels it, or leaves it to finish what is firm."""
    unit = Unit()
    task = asyncio.get_running_loop().create_task(work(unit))
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.add_done_callback(_heard)
        if unit.firm or (unit.at is not None and unit.at.waiting):
            unit.left = True
            _behind.add(task)
            task.add_done_callback(_behind.discard)
        else:
            task.cancel()
            await asyncio.wait([task])
        raise
    return task.result()


_behind: set[asyncio.Task[Any]] = set()  # an event loop itself does not keep its tasks alive


def _heard(task: asyncio.Task[Any]) -> None:
    """Its outcome is in the store; asyncio need not report that no caller asked for it."""
    if not task.cancelled():
        task.exception()


async def over(step: UnderWay) -> None:
    """Wait for a step that another call is doing."""
    await asyncio.wait([asyncio.wrap_future(step.ended)])


async def still(steps: list[UnderWay], timeout: float) -> list[UnderWay]:
    """Those that are under way after so many seconds."""
    if steps:
        await asyncio.wait([asyncio.wrap_future(step.ended) for step in steps], timeout=timeout)
    return [step for step in steps if not step.ended.done()]


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
