"""The work in one SQLite file: one writer at a time, and one flush to disk for everybody who waits for one.

Whoever holds the turn commits for all who are in line. A coroutine leaves that to the writer thread; a thread that can
wait takes the turn itself (`write_now`), so that nothing changes hands between its request and the disk.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ..model.errors import HoldfastError
from ..model.limits import GROUP_MAX, WRITES_QUEUED_MAX
from . import queries, sqlite_quick
from .base import Change, Query, Quick, Row, Transaction
from .migrations import all_migrations
from .sqlite_file import closed, connect, explain, prepare

T = TypeVar("T")
log = logging.getLogger("holdfast.store")

_MARKS = {"{now}": "holdfast_now()", "{for_update}": "", "{for_share}": ""}
_WAL_BYTES_FIRST, _WAL_BYTES_MORE = 256 << 10, 2 << 20  # how far ahead the log is lengthened: as much again, within
_WAL_BYTES_IDLE = 4 << 20  # when nobody writes, a log above this is folded in,
_WAL_COMMITS_IDLE = 64  # and one that has not grown since, as it is overwritten, after so many commits
_IDLE_S = 0.5  # nobody writes: no commit came for this long


_Statements = Callable[[sqlite3.Connection], Any]


class _Job:
    """What is to be done in a transaction, and what became of it."""

    __slots__ = ("done", "error", "statements", "value")

    def __init__(self, statements: _Statements) -> None:
        self.statements = statements
        self.value: Any = None
        self.error: BaseException | None = None
        self.done = False


class _Awaited(_Job):
    """One that a coroutine waits for."""

    __slots__ = ("future", "loop")

    def __init__(self, statements: _Statements) -> None:
        super().__init__(statements)
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()

    def settle(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


def _settle(jobs: list[_Awaited]) -> None:
    for job in jobs:
        job.settle()


def _tell(jobs: list[_Awaited]) -> None:
    """Wake each event loop once: waking it is a system call, and a batch is mostly of one."""
    for loop in {job.loop for job in jobs}:
        mine = [job for job in jobs if job.loop is loop]
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:
            pass  # it has ended: nobody waits any more


_Line = queue.SimpleQueue[_Awaited | None | bool]  # None: the end; True: somebody else wrote


class SqliteStore:
    """`await SqliteStore.open(path)`; any number of coroutines may write at the same time."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.url = "sqlite:///" + self.path
        self._writes: _Line = queue.SimpleQueue()
        self._reads: _Line = queue.SimpleQueue()
        self._near: deque[_Job] = deque()  # of threads that wait; they, or whoever has the turn, commit these
        self._turn, self._reading = threading.Lock(), threading.Lock()  # for the writing and the reading connection
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._nudged = False  # the writer thread knows that there are commits beside its own
        self._threads: list[threading.Thread] = []
        self._texts: dict[str, str] = {}
        self._wal = -1  # a descriptor of the log
        self._wal_bytes = 0  # its length as `_lengthen` left it
        self._folded_bytes = 0  # and when it was folded in last; with the commits since
        self._commits = 0
        self._closed = False

    @classmethod
    async def open(cls, path: str, migrations: list[tuple[int, str]] | None = None) -> SqliteStore:
        self = cls(path)
        self._writer = await asyncio.to_thread(prepare, self.path, migrations or all_migrations())
        for name, loop, line in (
            ("store-writer", self._write_loop, self._writes),
            ("store-reader", self._read_loop, self._reads),
        ):
            # Daemon threads: what was acknowledged is on disk, and nothing else may keep a process from ending.
            thread = threading.Thread(target=loop, args=(line,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        value: T = await self._ask(self._writes, self._driven(transaction))
        return value

    async def quick(self, quick: Quick) -> bool:
        try:
            done: bool = await self._ask(self._writes, partial(sqlite_quick.done, quick))
        except Exception as e:  # noqa: BLE001 - what is wrong is for the transaction to say
            return _in_vain(e)
        return done

    async def decide(self, change: Change[T]) -> T:
        return await self.write(lambda: queries.decided(change))

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        value: T = await self._ask(self._reads, self._driven(transaction))
        return value

    def write_now(self, transaction: Callable[[], Transaction[T]]) -> T:
        """`write` for a thread that can wait. While one flushes, others gather in line; the next takes them all."""
        job = _Job(self._driven(transaction))
        self._in_line(job)
        value: T = _outcome(job)
        return value

    def quick_now(self, quick: Quick) -> bool:
        """`quick` for a thread that can wait. Whoever finds nobody else writing does it in as few words as possible."""
        if self._near or not self._turn.acquire(blocking=False):
            job = _Job(partial(sqlite_quick.done, quick))
            self._in_line(job)
            return bool(job.value) if job.error is None else _in_vain(job.error)
        try:
            done = self._writer is not None and self._done(self._writer, quick)
        finally:
            self._turn.release()
        self._nudge()
        return done

    def _done(self, database: sqlite3.Connection, quick: Quick) -> bool:
        """A commit of what is foreseen. Under the turn."""
        try:
            database.execute("BEGIN IMMEDIATE")
            self._lengthen()
            done = sqlite_quick.done(quick, database)
            database.execute("COMMIT" if done else "ROLLBACK")
        except Exception as e:  # noqa: BLE001 - what is wrong is for the transaction to say
            self._undo(database)
            return _in_vain(explain(e, self.path) if isinstance(e, sqlite3.Error) else e)
        self._commits += 1
        return done

    def _in_line(self, job: _Job) -> None:
        """Until it is done, by whoever has the turn."""
        self._near.append(job)
        with self._turn:
            while not job.done:
                self._commit_line([])
        self._nudge()

    def _nudge(self) -> None:
        """The writer thread is to look after the log when nobody writes any more."""
        if not self._nudged:
            self._nudged = True
            self._writes.put(True)

    def read_now(self, transaction: Callable[[], Transaction[T]]) -> T:
        job = _Job(self._driven(transaction))
        self._look(job)
        value: T = _outcome(job)
        return value

    async def _ask(self, line: _Line, statements: _Statements) -> Any:
        if self._closed:
            raise closed()
        if line is self._writes and line.qsize() >= WRITES_QUEUED_MAX:
            raise HoldfastError("busy", f"{WRITES_QUEUED_MAX} writes wait for the disk already", "try again later")
        job = _Awaited(statements)
        line.put(job)
        return await job.future

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._reads.put(None)
        self._writes.put(None)
        for thread in reversed(self._threads):
            await asyncio.to_thread(thread.join)

    # -- on the threads --------------------------------------------------------------------------------------------

    def _write_loop(self, line: _Line) -> None:
        seen, going = -1, True  # how many commits there were when nobody was in line; -1: nothing to look after
        while going:
            try:
                job = line.get(timeout=None if seen < 0 else _IDLE_S)
            except queue.Empty:
                with self._turn:
                    if seen == self._commits:
                        self._fold()
                        seen, self._nudged = -1, False
                    else:
                        seen = self._commits
                continue
            going = job is not None
            with self._turn:
                self._commit_line([job] if isinstance(job, _Awaited) else [])
                seen = self._commits
        with self._turn:
            assert self._writer is not None
            self._writer.close()
            self._writer = None
            if self._wal >= 0:
                os.close(self._wal)

    def _commit_line(self, batch: list[_Job]) -> None:
        """Commit these and whoever else is in line. Under the turn."""
        try:
            while self._near and len(batch) < GROUP_MAX:
                batch.append(self._near.popleft())
            while len(batch) < GROUP_MAX and not self._writes.empty():
                job = self._writes.get_nowait()
                if job is None:
                    self._writes.put(None)  # the end is the writer thread's to see
                    break
                if isinstance(job, _Awaited):
                    batch.append(job)
        except queue.Empty:
            pass  # the writer thread was faster, and waits for the turn with it
        if not batch:
            return
        if self._writer is None:
            for waiting in batch:
                waiting.error = closed()
        else:
            self._commit(self._writer, batch)
            self._commits += 1
        for waiting in batch:
            waiting.done = True
        _tell([waiting for waiting in batch if isinstance(waiting, _Awaited)])

    def _commit(self, database: sqlite3.Connection, batch: list[_Job]) -> None:
        """One transaction of the database for all of the batch; each may fail alone.

        They seldom do. So all are run without a way back for each, and when one fails, all again with one.
        """
        try:
            database.execute("BEGIN IMMEDIATE")
            self._lengthen()
            for job in batch:
                self._run(database, job, "ROLLBACK")
                if job.error is not None:
                    break
            if not database.in_transaction and len(batch) > 1:
                database.execute("BEGIN IMMEDIATE")
                for job in batch:
                    job.error = None
                    database.execute("SAVEPOINT one")
                    self._run(database, job, "ROLLBACK TO one")
                    database.execute("RELEASE one")
            if database.in_transaction:
                database.execute("COMMIT")
        except sqlite3.Error as e:
            self._undo(database)
            error = explain(e, self.path)
            for job in batch:
                job.error = error

    def _undo(self, database: sqlite3.Connection) -> None:
        try:
            if database.in_transaction:
                database.execute("ROLLBACK")
        except sqlite3.Error:
            log.exception("cannot roll back %s", self.path)

    def _lengthen(self) -> None:
        """Write zeros past the log's end, so that commits overwrite: where a file grows, each flush writes its new
        length as well. Steps were about 1.5 times as fast for it on a busy ext4 (1.1 to 1.7 in three rounds). SQLite
        reads zeros as the end of the log, and starts at its beginning again once it is folded in. Called under
        SQLite's write lock: nobody else is adding to it.
        """
        try:
            first = self._wal < 0
            if first:
                self._wal = os.open(self.path + "-wal", os.O_WRONLY | os.O_CLOEXEC)
            # Not `stat`: since Linux 6.13 a file whose times somebody asked for gets new ones with the next write, and
            # each flush then writes the inode as well.
            size = os.lseek(self._wal, 0, os.SEEK_END)
            if first:
                self._wal_bytes = size  # what a killed process left is used before there is more
            if size == self._wal_bytes:
                return
            self._wal_bytes = size
            more = min(max(size, _WAL_BYTES_FIRST), _WAL_BYTES_MORE)
            self._wal_bytes += os.pwrite(self._wal, bytes(more), size)
        except OSError:
            pass  # not made yet; or a full disk, which SQLite meets only when it needs the room

    def _run(self, database: sqlite3.Connection, job: _Job, undo: str) -> None:
        """One transaction of a batch. Where SQLite undid all of the batch with it, the error is passed on."""
        try:
            job.value = job.statements(database)
        except BaseException as e:
            if isinstance(e, sqlite3.Error) and not database.in_transaction:
                raise
            # It belongs to whoever asked, not to this thread.
            job.error = explain(e, self.path) if isinstance(e, sqlite3.Error) else e
            database.execute(undo)

    def _read_loop(self, line: _Line) -> None:
        while (job := line.get()) is not None:
            if isinstance(job, _Awaited):
                self._look(job)
                _tell([job])
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _look(self, job: _Job) -> None:
        with self._reading:
            try:
                if self._closed and self._reader is None:
                    raise closed()
                if self._reader is None:
                    self._reader = connect(self.path, read_only=True)
                self._reader.execute("BEGIN")
                try:
                    job.value = job.statements(self._reader)
                finally:
                    self._reader.execute("ROLLBACK")
            except sqlite3.Error as e:
                job.error = explain(e, self.path)
            except BaseException as e:  # noqa: BLE001 - it belongs to whoever asked, not to this thread
                job.error = e

    def _driven(self, transaction: Callable[[], Transaction[T]]) -> Callable[[sqlite3.Connection], T]:
        return lambda database: self._drive(database, transaction())

    def _drive(self, database: sqlite3.Connection, transaction: Transaction[T]) -> T:
        try:
            query = next(transaction)
            while True:
                query = transaction.send(self._execute(database, query))
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            transaction.close()

    def _execute(self, database: sqlite3.Connection, query: Query) -> list[Row]:
        text = self._texts.get(query.sql)
        if text is None:
            text = query.sql
            for mark, word in _MARKS.items():
                text = text.replace(mark, word)
            self._texts[query.sql] = text
        return database.execute(text, query.args).fetchall()

    def _fold(self) -> None:
        """Move a grown log into the database while nobody waits; a reader that is in the way postpones it."""
        assert self._writer is not None
        try:
            size = os.stat(self.path + "-wal").st_size
            if size > _WAL_BYTES_IDLE and (size != self._folded_bytes or self._commits >= _WAL_COMMITS_IDLE):
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._folded_bytes, self._commits = size, 0
        except (OSError, sqlite3.Error) as e:
            log.warning("cannot fold the log of %s in: %s", self.path, e)


def _in_vain(error: BaseException) -> bool:
    """A foreseen write that failed is not done. But a lock that was waited for is not waited for once more."""
    if isinstance(error, HoldfastError) and error.code == "busy":
        raise error
    return False


def _outcome(job: _Job) -> Any:
    if job.error is not None:
        raise job.error
    return job.value
