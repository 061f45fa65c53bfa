"""One commit for all who wait: the caller that holds the turn commits for everyone in line.

A coroutine leaves that to the writer thread; a thread that can wait takes the turn itself (`now`), so that nothing
changes hands between its request and the disk. While one commit flushes, others gather in line; the next
takes them all.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from ..model.errors import HoldfastError
from ..model.limits import GROUP_MAX, WRITES_QUEUED_MAX
from .base import Change, Transaction

T = TypeVar("T")
Work = Change[Any] | Callable[[], Transaction[Any]]
_IDLE_S = 0.5  # no commit came for this long


class Job:
    """What is to be done, and what became of it."""

    __slots__ = ("done", "error", "value", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.value: Any = None
        self.error: BaseException | None = None
        self.done = False

    def outcome(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class _Awaited(Job):
    """One that a coroutine waits for."""

    __slots__ = ("future", "loop")

    def __init__(self, work: Work) -> None:
        super().__init__(work)
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def settle(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


def closed() -> HoldfastError:
    return HoldfastError("failed", "the store is closed", "open it again")


_Line = queue.SimpleQueue[_Awaited | None | bool]  # None: the end; True: a thread committed by itself


class GroupCommit:
    """`commit(jobs)` is the store's: it sets the value or the error of each, and raises nothing. It, `idle` (no commit
    came for a while) and `end` are called under the turn."""

    def __init__(
        self, commit: Callable[[list[Job]], None], *, end: Callable[[], None], idle: Callable[[], None] | None = None
    ) -> None:
        self._commit, self._end, self._idle = commit, end, idle
        self.turn = threading.Lock()
        self.near: deque[Job] = deque()  # of threads that wait; they, or the holder of the turn, commit these
        self.commits = 0
        self.nudged = idle is None  # the writer thread knows of commits beside its own; or need not
        self._line: _Line = queue.SimpleQueue()
        self._closed = self._ended = False
        # A daemon thread: what was acknowledged is on disk, and nothing else may keep a process from ending.
        self._thread = threading.Thread(target=self._write, name="store-writer", daemon=True)
        self._thread.start()

    async def later(self, work: Work) -> Any:
        if self._closed:
            raise closed()
        if self._line.qsize() >= WRITES_QUEUED_MAX:
            raise HoldfastError("busy", f"{WRITES_QUEUED_MAX} writes wait for the disk already", "try again later")
        job = _Awaited(work)
        self._line.put(job)
        return await job.future

    def now(self, work: Work) -> Any:
        """`later`, for a thread that can wait."""
        job = Job(work)
        self.near.append(job)
        with self.turn:
            while not job.done:
                self._commit_line([])
        if not self.nudged:  # the writer thread is to look after the store once no one writes any more
            self.nudged = True
            self._line.put(True)
        return job.outcome()

    async def close(self) -> None:
        self._closed = True
        self._line.put(None)
        await asyncio.to_thread(self._thread.join)

    # -- on the threads --------------------------------------------------------------------------------------------

    def _write(self) -> None:
        seen, going = -1, True  # how many commits there were when no one was in line; -1: nothing to look after
        while going:
            try:
                job = self._line.get(timeout=None if seen < 0 or self._idle is None else _IDLE_S)
            except queue.Empty:
                with self.turn:
                    if seen == self.commits and self._idle is not None:
                        self._idle()
                        seen, self.nudged = -1, False
                    else:
                        seen = self.commits
                continue
            going = job is not None
            with self.turn:
                self._commit_line([job] if isinstance(job, _Awaited) else [])
                seen = self.commits
        with self.turn:
            self._ended = True
            self._end()

    def _commit_line(self, batch: list[Job]) -> None:
        """Commit these and all others in line. Under the turn."""
        try:
            while self.near and len(batch) < GROUP_MAX:
                batch.append(self.near.popleft())
            while len(batch) < GROUP_MAX and not self._line.empty():
                job = self._line.get_nowait()
                if job is None:
                    self._line.put(None)  # the end is the writer thread's to see
                    break
                if isinstance(job, _Awaited):
                    batch.append(job)
        except queue.Empty:
            pass  # the writer thread was faster, and waits for the turn with it
        if not batch:
            return
        if self._ended:
            for waiting in batch:
                waiting.error = closed()
        else:
            self._commit(batch)
            self.commits += 1
        tell(batch)


def tell(jobs: list[Job]) -> None:
    """These are done. Each event loop is woken once: waking it is a system call, and a batch is mostly of one."""
    for job in jobs:
        job.done = True
    awaited = [job for job in jobs if isinstance(job, _Awaited)]
    for loop in {job.loop for job in awaited}:
        mine = [job for job in awaited if job.loop is loop]
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:
            pass  # it has ended: no one waits any more


def _settle(jobs: list[_Awaited]) -> None:
    for job in jobs:
        job.settle()


class Readers:
    """Threads on which coroutines have a store read; `look(job)` is the store's, and raises nothing."""

    def __init__(self, look: Callable[[Job], None], *, end: Callable[[], None], threads: int = 1) -> None:
        self._look, self._end = look, end
        self._line: _Line = queue.SimpleQueue()
        self._closed = False
        self._threads = [threading.Thread(target=self._read, name="store-reader", daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    async def later(self, transaction: Callable[[], Transaction[Any]]) -> Any:
        if self._closed:
            raise closed()
        job = _Awaited(transaction)
        self._line.put(job)
        return await job.future

    def now(self, transaction: Callable[[], Transaction[Any]]) -> Any:
        job = Job(transaction)
        self._look(job)
        return job.outcome()

    async def close(self) -> None:
        self._closed = True
        for _ in self._threads:
            self._line.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        self._end()

    def _read(self) -> None:
        while (job := self._line.get()) is not None:
            if isinstance(job, _Awaited):
                self._look(job)
                tell([job])


class LineStore:
    """The ways into a store whose writes share commits, for coroutines and for threads."""

    line: GroupCommit
    readers: Readers
    _closed = False

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        value: T = await self.line.later(transaction)
        return value

    async def decide(self, change: Change[T]) -> T:
        value: T = await self.line.later(change)
        return value

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        value: T = await self.readers.later(transaction)
        return value

    def write_now(self, transaction: Callable[[], Transaction[T]]) -> T:
        value: T = self.line.now(transaction)
        return value

    def decide_now(self, change: Change[T]) -> T:
        value: T = self.line.now(change)
        return value

    def read_now(self, transaction: Callable[[], Transaction[T]]) -> T:
        value: T = self.readers.now(transaction)
        return value

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self.readers.close()
        await self.line.close()
