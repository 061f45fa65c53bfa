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
from typing import TypeVar

from ..model.errors import HoldfastError
from ..model.limits import GROUP_MAX, WRITES_QUEUED_MAX
from . import sqlite_quick
from .base import Foreseen, Query, Row, Transaction
from .migrations import all_migrations
from .sqlite_ahead import Ahead
from .sqlite_file import clock, closed, connect, explain, prepare
from .sqlite_jobs import Awaited, Job, outcome, tell

T = TypeVar("T")
log = logging.getLogger("holdfast.store")

_MARKS = {"{now}": "holdfast_now()", "{for_update}": "", "{for_share}": ""}
_WAL_BYTES_FIRST, _WAL_BYTES_MORE = 256 << 10, 2 << 20  # how far ahead the log is lengthened: as much again, within
_WAL_BYTES_IDLE = 4 << 20  # when nobody writes, a log above this is folded in,
_WAL_COMMITS_IDLE = 64  # and one that has not grown since, as it is overwritten, after so many commits
_IDLE_S = 0.5  # nobody writes: no commit came for this long
_LAND_S = 0.05  # and for what was acknowledged ahead of its commit: others, who look into the file, do not wait long
_HASTE_US = 50_000  # threads whose writes come closer than this are in the middle of something short


_Line = queue.SimpleQueue[Awaited | None | bool]  # None: the end; True: somebody else wrote


class SqliteStore:
    """`await SqliteStore.open(path)`; any number of coroutines may write at the same time."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.url = "sqlite:///" + self.path
        self._writes: _Line = queue.SimpleQueue()
        self._reads: _Line = queue.SimpleQueue()
        self._near: deque[Job] = deque()  # of threads that wait; they, or whoever has the turn, commit these
        self._turn, self._reading = threading.Lock(), threading.Lock()  # for the writing and the reading connection
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._nudged = False  # the writer thread knows that there are commits beside its own
        self._threads: list[threading.Thread] = []
        self._texts: dict[str, str] = {}
        self._ahead: Ahead | None = None
        self._hasty_at = 0  # when threads wrote last, and all went as foreseen
        self._wal = -1  # a descriptor of the log
        self._wal_bytes = 0  # the log's length as `_lengthen` left it
        self._folded_bytes = 0  # and when it was folded in last; with the commits since
        self._commits = 0
        self._closed = False

    @classmethod
    async def open(cls, path: str, migrations: list[tuple[int, str]] | None = None) -> SqliteStore:
        self = cls(path)
        self._writer, self._ahead = await asyncio.to_thread(prepare, self.path, migrations or all_migrations())
        for name, loop, line in (
            ("store-writer", self._write_loop, self._writes),
            ("store-reader", self._read_loop, self._reads),
        ):
            # Daemon threads: what was acknowledged is on disk, and nothing else may keep a process from ending.
            thread = threading.Thread(target=loop, args=(line,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    async def write(self, transaction: Callable[[], Transaction[T]], quick: Foreseen | None = None) -> T:
        if self._writes.qsize() >= WRITES_QUEUED_MAX:
            raise HoldfastError("busy", f"{WRITES_QUEUED_MAX} writes wait for the disk already", "try again later")
        return await self._ask(self._writes, transaction, quick)

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        return await self._ask(self._reads, transaction)

    def write_now(self, transaction: Callable[[], Transaction[T]], quick: Foreseen | None = None) -> T:
        """`write` for a thread that can wait. While one flushes, others gather in line; the next takes them all."""
        job = Job(transaction, quick)
        self._near.append(job)
        with self._turn:
            while not job.done:
                self._commit_line([])
        if not self._nudged:
            self._nudged = True
            self._writes.put(True)
        value: T = outcome(job)
        return value

    def read_now(self, transaction: Callable[[], Transaction[T]]) -> T:
        job = Job(transaction)
        if not self._look_ahead(job):
            self._look(job)
        value: T = outcome(job)
        return value

    async def _ask(self, line: _Line, transaction: Callable[[], Transaction[T]], quick: Foreseen | None = None) -> T:
        if self._closed:
            raise closed()
        job = Awaited(transaction, quick)
        line.put(job)
        value: T = await job.future
        return value

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
                job = line.get(timeout=None if seen < 0 else _LAND_S if self._kept else _IDLE_S)
            except queue.Empty:
                with self._turn:
                    if self._kept and seen == self._commits and self._land_quietly():
                        continue
                    if seen == self._commits:
                        self._fold()
                        seen, self._nudged = -1, False
                    else:
                        seen = self._commits
                continue
            going = job is not None
            with self._turn:
                self._commit_line([job] if isinstance(job, Awaited) else [])
                seen = self._commits
        with self._turn:
            assert self._writer is not None
            assert self._ahead is not None
            self._land_quietly()
            self._writer.close()
            self._ahead.close()
            if self._wal >= 0:
                os.close(self._wal)
            self._writer = self._ahead = None

    def _commit_line(self, batch: list[Job]) -> None:
        """Commit these and whoever else is in line. Under the turn."""
        try:
            while self._near and len(batch) < GROUP_MAX:
                batch.append(self._near.popleft())
            while len(batch) < GROUP_MAX and not self._writes.empty():
                job = self._writes.get_nowait()
                if job is None:
                    self._writes.put(None)  # the end is the writer thread's to see
                    break
                if isinstance(job, Awaited):
                    batch.append(job)
        except queue.Empty:
            pass  # the writer thread was faster, and waits for the turn with it
        if not batch:
            return
        if self._writer is None:
            for waiting in batch:
                waiting.error = closed()
        else:
            left = self._write_ahead(self._writer, batch)
            if left:
                self._commit(self._writer, left)
            self._commits += 1
        for waiting in batch:
            waiting.done = True
        awaited = [waiting for waiting in batch if isinstance(waiting, Awaited)]
        if awaited:
            tell(awaited)

    def _write_ahead(self, database: sqlite3.Connection, batch: list[Job]) -> list[Job]:
        """Those that are left for a commit: all, unless threads write in quick succession and it is as foreseen."""
        assert self._ahead is not None
        quicks = [job.quick for job in batch if job.quick is not None and not isinstance(job, Awaited)]
        if len(quicks) < len(batch):
            self._hasty_at = 0
            return batch
        now = clock()
        hasty = now - self._hasty_at < _HASTE_US
        count = self._ahead.do(database, quicks, clock) if hasty else 0
        for job, quick in zip(batch[:count], quicks, strict=False):
            job.value = quick.answer
        # What is not as foreseen seldom comes alone: a run that is taken up again finds its steps done.
        self._hasty_at = 0 if hasty and count < len(batch) else now
        return batch[count:]

    @property
    def _kept(self) -> bool:
        return self._ahead is not None and bool(self._ahead.kept)

    def _land(self) -> None:
        """Commit what was acknowledged ahead of it, before anything else happens to the database. Under the turn."""
        if self._ahead is not None and self._writer is not None and (self._ahead.open or self._ahead.kept):
            if self._ahead.open:
                self._lengthen()
            self._ahead.land(self._writer)

    def _land_quietly(self) -> bool:
        """Whether it could be done. Whoever writes or reads next tries again, and is told."""
        try:
            self._land()
        except (sqlite3.Error, HoldfastError) as e:
            log.warning("cannot commit to %s what is written beside it: %s", self.path, e)
        return not self._kept

    def _commit(self, database: sqlite3.Connection, batch: list[Job]) -> None:
        """One transaction of the database for all of the batch; each may fail alone.

        They seldom do. So all are run without a way back for each, and when one fails, all again with one.
        """
        try:
            self._land()
            changes = database.total_changes
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
            assert self._ahead is not None
            wrote = database.in_transaction and database.total_changes > changes
            if wrote:
                self._ahead.touch(database)
            if database.in_transaction:
                database.execute("COMMIT")
            if wrote:
                self._ahead.flushed()
        except Exception as e:  # noqa: BLE001 - theirs, whatever it is: a thread that is told nothing waits for ever
            error = explain(e, self.path) if isinstance(e, sqlite3.Error) else e
            try:
                if database.in_transaction:
                    database.execute("ROLLBACK")
            except sqlite3.Error:
                log.exception("cannot roll back %s", self.path)
            for job in batch:
                job.error = error

    def _lengthen(self) -> None:
        """Write zeros past the log's end, so that commits overwrite: where a file grows, each flush writes its new
        length as well. Steps were about 1.5 times as fast for it on a busy ext4 (1.1 to 1.7 in three rounds). SQLite
        reads zeros as the end of the log, and starts at its beginning again once it is folded in. Called under
        SQLite's write lock: nobody else is adding to it.
        """
        try:
            if self._wal < 0:
                self._wal = os.open(self.path + "-wal", os.O_WRONLY | os.O_CLOEXEC)
            size = os.lseek(self._wal, 0, os.SEEK_END)
            if size == self._wal_bytes:
                return
            self._wal_bytes = size
            more = min(max(size, _WAL_BYTES_FIRST), _WAL_BYTES_MORE)
            wal = os.open(self.path + "-wal", os.O_WRONLY | os.O_CLOEXEC)
            try:
                self._wal_bytes += os.pwrite(wal, bytes(more), size)
            finally:
                os.close(wal)
        except OSError:
            pass  # not made yet; or a full disk, which SQLite meets only when it needs the room

    def _run(self, database: sqlite3.Connection, job: Job, undo: str) -> None:
        """One transaction of a batch. Where SQLite undid all of the batch with it, the error is passed on."""
        try:
            if job.quick is not None and sqlite_quick.done(database, job.quick, clock()):
                job.value = job.quick.answer
            else:
                job.value = self._drive(database, job.transaction())
        except BaseException as e:
            if isinstance(e, sqlite3.Error) and not database.in_transaction:
                raise
            # It belongs to whoever asked, not to this thread.
            job.error = explain(e, self.path) if isinstance(e, sqlite3.Error) else e
            database.execute(undo)

    def _read_loop(self, line: _Line) -> None:
        while (job := line.get()) is not None:
            if isinstance(job, Awaited):
                self._look(job)
                tell([job])
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    def _look_ahead(self, job: Job) -> bool:
        """Whether it could be read where what is not committed yet can be seen: then there need be no commit for it."""
        if not self._kept:
            return False
        with self._turn:
            if self._ahead is None or self._writer is None or not (self._ahead.open and self._writer.in_transaction):
                return False
            try:
                job.value = self._drive(self._writer, job.transaction())
            except sqlite3.Error as e:
                job.error = explain(e, self.path)
            except BaseException as e:  # noqa: BLE001 - it belongs to whoever asked, not to the turn
                job.error = e
            return True

    def _look(self, job: Job) -> None:
        with self._reading:
            try:
                if self._kept:
                    with self._turn:
                        self._land()
                if self._closed and self._reader is None:
                    raise closed()
                if self._reader is None:
                    self._reader = connect(self.path, read_only=True)
                self._reader.execute("BEGIN")
                try:
                    job.value = self._drive(self._reader, job.transaction())
                finally:
                    self._reader.execute("ROLLBACK")
            except sqlite3.Error as e:
                job.error = explain(e, self.path)
            except BaseException as e:  # noqa: BLE001 - it belongs to whoever asked, not to this thread
                job.error = e

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
