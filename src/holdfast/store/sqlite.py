"""The work in one SQLite file: one writer at a time, and one flush to disk for all who wait for one."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
from typing import TypeVar

from ..model.errors import HoldfastError
from . import queries
from .base import Change, Query, Row, Transaction
from .group_commit import GroupCommit, Job, LineStore, Readers, closed
from .migrations import all_migrations
from .remembered import Guess, Remembered
from .sqlite_file import clock, connect, explain, prepare

T = TypeVar("T")
log = logging.getLogger("holdfast.store")

_MARKS = {"{now}": "holdfast_now()", "{for_update}": "", "{for_share}": ""}
_WAL_BYTES_FIRST, _WAL_BYTES_MORE = 256 << 10, 2 << 20  # how far ahead the log is lengthened: as much again, within
_WAL_BYTES_IDLE = 4 << 20  # when nobody writes, a log above this is folded in,
_WAL_COMMITS_IDLE = 64  # and one that has not grown since, as it is overwritten, after so many commits

# What makes a guess right (remembered.py): (attempt, epoch, now, run, the number of the first new entry).
_GUARD = (
    " FROM attempt WHERE id = ? AND epoch = ? AND ended_at IS NULL AND lease_until > ?"
    " AND NOT EXISTS (SELECT 1 FROM log WHERE run = ? AND seq = ?)"
)


def _selected(insert: str) -> str:
    """An INSERT of one row that does nothing where the guard does not hold, or its key is taken."""
    head, values = insert.split(" VALUES (")
    return f"{head} SELECT {values.rstrip(')')}{_GUARD} ON CONFLICT DO NOTHING"


_NEW_GUARDED, _ENTRY_GUARDED = _selected(queries.INSERT_STEP), _selected(queries.INSERT_ENTRY)
_MOVED_GUARDED = f"{queries.UPDATE_STEP} AND EXISTS (SELECT 1{_GUARD})"


class SqliteStore(LineStore):
    """`await SqliteStore.open(path)`; any number of coroutines and threads may write at the same time."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.url = "sqlite:///" + self.path
        self._reading = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._remembered = Remembered()
        self._texts: dict[str, str] = {}
        self._wal = -1  # a descriptor of the log
        self._wal_bytes = 0  # its length as `_lengthen` left it
        self._folded_bytes = self._folded_commits = 0  # its length, and the commits so far, when it was folded in last

    @classmethod
    async def open(cls, path: str, migrations: list[tuple[int, str]] | None = None) -> SqliteStore:
        self = cls(path)
        self._writer = await asyncio.to_thread(prepare, self.path, migrations or all_migrations())
        self.line = GroupCommit(self._commit, end=self._end, idle=self._fold)
        self.readers = Readers(self._look, end=self._end_reading)
        return self

    # -- under the turn --------------------------------------------------------------------------------------------

    def _end(self) -> None:
        assert self._writer is not None
        self._writer.close()
        self._writer = None
        if self._wal >= 0:
            os.close(self._wal)

    def _commit(self, batch: list[Job]) -> None:
        """One transaction of the database for all of the batch; each may fail alone.

        They seldom do. So all are run without a way back for each, and when one fails, all again with one.
        """
        database = self._writer
        assert database is not None
        try:
            database.execute("BEGIN IMMEDIATE")
            self._lengthen()
            if not all(self._run(database, job, "ROLLBACK") for job in batch) and len(batch) > 1:
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
        self._remembered.forget()
        try:
            if database.in_transaction:
                database.execute("ROLLBACK")
        except sqlite3.Error:
            log.exception("cannot roll back %s", self.path)

    def _run(self, database: sqlite3.Connection, job: Job, undo: str) -> bool:
        """One of a batch; False: it failed and was undone. Where SQLite undid the whole batch with it, it raises."""
        try:
            if isinstance(job.work, Change):
                self._change(database, job, job.work)
            else:
                job.value = self._drive(database, job.work())
        except BaseException as e:
            self._remembered.forget()
            if isinstance(e, sqlite3.Error) and not database.in_transaction:
                raise
            # It belongs to the caller, not to this thread.
            job.error = explain(e, self.path) if isinstance(e, sqlite3.Error) else e
            database.execute(undo)
            return False
        return True

    def _change(self, database: sqlite3.Connection, job: Job, change: Change[T]) -> None:
        """As its rule decides. One that is refused has written nothing: the others of the batch go on."""
        guess = self._remembered.guess(change, clock())
        if guess is not None and self._guarded(database, guess):
            job.value = guess.answer
            self._remembered.keep(guess.rows, guess.put)
            return
        try:
            held = self._drive(database, queries.held(change.run))
            rows = queries.as_read(held, self._execute(database, queries.to_read(change)))
            job.value, put = change.decide(rows)
        except HoldfastError as e:
            job.error = e
            return
        for query in queries.to_write(put):
            database.execute(query.sql, query.args)
        self._remembered.keep(rows, put)

    def _guarded(self, database: sqlite3.Connection, guess: Guess) -> bool:
        """Write what was guessed; False: it is not so, and nothing was written. Under the write lock what the first
        statement saw is so for the others."""
        (held, _, _, _), _, put = guess
        first, *rest = queries.to_write(put)
        guarded = _NEW_GUARDED if put.new else _MOVED_GUARDED if put.changed else _ENTRY_GUARDED
        entry = put.log[0]
        ours = (held.attempt, held.epoch, held.now, entry.run, entry.seq)
        if database.execute(guarded, (*first.args, *ours)).rowcount != 1:
            return False
        for query in rest:
            database.execute(query.sql, query.args)
        return True

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

    def _fold(self) -> None:
        """Move a grown log into the database while nobody waits; a reader that is in the way postpones it."""
        assert self._writer is not None
        try:
            size = os.stat(self.path + "-wal").st_size
            commits = self.line.commits - self._folded_commits
            if size > _WAL_BYTES_IDLE and (size != self._folded_bytes or commits >= _WAL_COMMITS_IDLE):
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._folded_bytes, self._folded_commits = size, self.line.commits
        except (OSError, sqlite3.Error) as e:
            log.warning("cannot fold the log of %s in: %s", self.path, e)

    # -- reading ---------------------------------------------------------------------------------------------------

    def _look(self, job: Job) -> None:
        with self._reading:
            try:
                if self._closed and self._reader is None:
                    raise closed()
                if self._reader is None:
                    self._reader = connect(self.path, read_only=True)
                self._reader.execute("BEGIN")
                try:
                    assert not isinstance(job.work, Change)
                    job.value = self._drive(self._reader, job.work())
                finally:
                    self._reader.execute("ROLLBACK")
            except sqlite3.Error as e:
                job.error = explain(e, self.path)
            except BaseException as e:  # noqa: BLE001 - it belongs to the caller, not to this thread
                job.error = e

    def _end_reading(self) -> None:
        with self._reading:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

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
