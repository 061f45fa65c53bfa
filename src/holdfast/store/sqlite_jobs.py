"""A transaction in line for the disk, what became of it, and how whoever waits for it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .base import Foreseen, Transaction


class Job:
    """A transaction, and what became of it."""

    __slots__ = ("done", "error", "quick", "transaction", "value")

    def __init__(self, transaction: Callable[[], Transaction[Any]], quick: Foreseen | None = None) -> None:
        self.transaction, self.quick = transaction, None if quick is None else quick()
        self.value: Any = None
        self.error: BaseException | None = None
        self.done = False


class Awaited(Job):
    """One that a coroutine waits for."""

    __slots__ = ("future", "loop")

    def __init__(self, transaction: Callable[[], Transaction[Any]], quick: Foreseen | None = None) -> None:
        super().__init__(transaction, quick)
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def settle(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


def _settle(jobs: list[Awaited]) -> None:
    for job in jobs:
        job.settle()


def tell(jobs: list[Awaited]) -> None:
    """Wake each event loop once: waking it is a system call, and a batch is mostly of one."""
    for loop in {job.loop for job in jobs}:
        mine = [job for job in jobs if job.loop is loop]
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:
            pass  # it has ended: nobody waits any more


def outcome(job: Job) -> Any:
    if job.error is not None:
        raise job.error
    return job.value
