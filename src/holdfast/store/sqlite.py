"""The work in one SQLite file: one writer thread, and one flush to disk for everybody who waits for one."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..model.errors import HoldfastError
from ..model.limits import GROUP_MAX, WRITES_QUEUED_MAX
from .base import Query, Row, Transaction
from .migrations import VERSIONS, all_migrations, outstanding, statements

T = TypeVar("T")
log = logging.getLogger("holdfast.store")

_WORDS = {"int": "INTEGER", "bytes": "BLOB", "strict": " STRICT"}
_MARKS = {"{now}": "holdfast_now()", "{for_update}": "", "{for_share}": ""}
_BUSY_MS = 10_000  # another process with the file open (a backup, the sqlite3 shell) is waited for this long
_STATEMENTS_KEPT = 256  # prepared statements: more than the work plane has
_WAL_PAGES_MAX = 16_384  # 64 MiB of log are folded in within a commit at the latest, each costing that commit a flush
_WAL_BYTES_FIRST, _WAL_BYTES_MORE = 256 << 10, 4 << 20  # how far ahead the log is lengthened: as much again, within
_WAL_BYTES_IDLE = 4 << 20  # when nobody writes, a log above this is folded in,
_WAL_COMMITS_IDLE = 256  # and one that has not grown since, as it is overwritten, after so many commits
_IDLE_S = 0.5  # nobody writes: no commit came for this long
_PAGE_CACHE_KIB = 8192


class _Job:
    """A transaction, and who waits for it."""

    __slots__ = ("error", "future", "loop", "transaction", "value")

    def __init__(self, transaction: Callable[[], Transaction[Any]]) -> None:
        self.transaction = transaction
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.value: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        if self.future.cancelled():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.value)


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        job.settle()


def _tell(jobs: list[_Job]) -> None:
    """Wake each event loop once: waking it is a system call, and a batch is mostly of one."""
    for loop in {job.loop for job in jobs}:
        mine = [job for job in jobs if job.loop is loop]
        try:
            loop.call_soon_threadsafe(_settle, mine)
        except RuntimeError:
            pass  # it has ended: nobody waits any more


def connect(path: str, *, read_only: bool) -> sqlite3.Connection:
    """A connection as durable as the interface promises; called on the thread that will use it."""
    database = sqlite3.connect(path, isolation_level=None, cached_statements=_STATEMENTS_KEPT, check_same_thread=False)
    database.create_function("holdfast_now", 0, lambda: time.time_ns() // 1000)
    database.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    database.execute(f"PRAGMA cache_size=-{_PAGE_CACHE_KIB}")
    if read_only:
        database.execute("PRAGMA query_only=ON")
        return database
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")  # NORMAL survives kill -9 but loses commits with the power
    database.execute("PRAGMA foreign_keys=ON")
    database.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES_MAX}")
    return database


class SqliteStore:
    """`await SqliteStore.open(path)`; any number of coroutines may write at the same time."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self.url = "sqlite:///" + self.path
        self._writes: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._texts: dict[str, str] = {}
        self._wal_bytes = 0  # the log's length as `_lengthen` left it
        self._folded_bytes = 0  # and when it was folded in last; with the commits since
        self._commits = 0
        self._closed = False

    @classmethod
    async def open(cls, path: str, migrations: list[tuple[int, str]] | None = None) -> SqliteStore:
        self = cls(path)
        database = await asyncio.to_thread(self._prepare, migrations or all_migrations())
        for name, loop, line in (
            ("store-writer", self._write_loop, self._writes),
            ("store-reader", self._read_loop, self._reads),
        ):
            # Daemon threads: what was acknowledged is on disk, and nothing else may keep a process from ending.
            thread = threading.Thread(target=loop, args=(database, line), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        if self._writes.qsize() >= WRITES_QUEUED_MAX:
            raise HoldfastError("busy", f"{WRITES_QUEUED_MAX} writes wait for the disk already", "try again later")
        return await self._ask(self._writes, transaction)

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        return await self._ask(self._reads, transaction)

    async def _ask(self, line: queue.SimpleQueue[_Job | None], transaction: Callable[[], Transaction[T]]) -> T:
        if self._closed:
            raise HoldfastError("failed", "the store is closed", "open it again")
        job = _Job(transaction)
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

    def _prepare(self, known: list[tuple[int, str]]) -> sqlite3.Connection:
        """Open, or say in one line why not; and bring the schema up to date."""
        try:
            # Made by us, so that nobody else can read it, not even for a moment; the log gets the same mode.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as e:
            code = "store_full" if e.errno == 28 else "store_readonly"
            raise HoldfastError(
                code, f"cannot write {self.path}: {e.strerror}", "check the folder, or set HOLDFAST_STORE"
            ) from None
        database = None
        try:
            database = connect(self.path, read_only=False)
            self._migrate(database, known)
        except BaseException as e:
            if database is not None:
                database.close()
            if isinstance(e, sqlite3.Error):
                raise explain(e, self.path) from e
            raise
        return database

    def _migrate(self, database: sqlite3.Connection, known: list[tuple[int, str]]) -> None:
        has = database.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_version'").fetchone()[0]
        version = database.execute("SELECT MAX(version) FROM schema_version").fetchone()[0] if has else 0
        if not outstanding(version or 0, known, self.path):
            return
        database.execute("BEGIN IMMEDIATE")
        try:
            database.execute(statements(VERSIONS, _WORDS)[0])
            version = database.execute("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetchone()[0]
            for number, sql in outstanding(version, known, self.path):
                for statement in statements(sql, _WORDS):
                    database.execute(statement)
                database.execute("INSERT INTO schema_version VALUES (?, holdfast_now())", (number,))
            database.execute("COMMIT")
        except BaseException:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise

    def _write_loop(self, database: sqlite3.Connection, line: queue.SimpleQueue[_Job | None]) -> None:
        dirty, going = False, True
        while going:
            try:
                job = line.get(timeout=_IDLE_S if dirty else None)
            except queue.Empty:
                dirty = False
                self._fold(database)
                continue
            batch: list[_Job] = []
            while job is not None:
                batch.append(job)
                if len(batch) == GROUP_MAX or line.empty():
                    break
                job = line.get()
            going = job is not None
            if batch:
                self._commit(database, batch)
                self._commits += 1
                dirty = True
                _tell(batch)
        database.close()

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
            error = explain(e, self.path)
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
            size = os.stat(self.path + "-wal").st_size
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

    def _run(self, database: sqlite3.Connection, job: _Job, undo: str) -> None:
        """One transaction of a batch. Where SQLite undid all of the batch with it, the error is passed on."""
        try:
            job.value = self._drive(database, job.transaction())
        except BaseException as e:
            if isinstance(e, sqlite3.Error) and not database.in_transaction:
                raise
            # It belongs to whoever asked, not to this thread.
            job.error = explain(e, self.path) if isinstance(e, sqlite3.Error) else e
            database.execute(undo)

    def _read_loop(self, writer: sqlite3.Connection, line: queue.SimpleQueue[_Job | None]) -> None:
        database: sqlite3.Connection | None = None
        while (job := line.get()) is not None:
            try:
                database = database or connect(self.path, read_only=True)
                database.execute("BEGIN")
                try:
                    job.value = self._drive(database, job.transaction())
                finally:
                    database.execute("ROLLBACK")
            except sqlite3.Error as e:
                job.error = explain(e, self.path)
            except BaseException as e:  # noqa: BLE001 - it belongs to whoever asked, not to this thread
                job.error = e
            _tell([job])
        if database is not None:
            database.close()

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

    def _fold(self, database: sqlite3.Connection) -> None:
        """Move a grown log into the database while nobody waits; a reader that is in the way postpones it."""
        try:
            size = os.stat(self.path + "-wal").st_size
            if size > _WAL_BYTES_IDLE and (size != self._folded_bytes or self._commits >= _WAL_COMMITS_IDLE):
                database.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._folded_bytes, self._commits = size, 0
        except (OSError, sqlite3.Error) as e:
            log.warning("cannot fold the log of %s in: %s", self.path, e)


_EXPLAINED = {
    "SQLITE_FULL": ("store_full", "the disk is full", "free some space; what was acknowledged is safe"),
    "SQLITE_READONLY": ("store_readonly", "the file cannot be written", "check its owner, mode and folder"),
    "SQLITE_CANTOPEN": ("store_readonly", "the file cannot be opened", "check its owner, mode and folder"),
    "SQLITE_PERM": ("store_readonly", "the file may not be used", "check its owner, mode and folder"),
    "SQLITE_NOTADB": ("store_damaged", "the file is not a SQLite database", "move it away, or restore a backup"),
    "SQLITE_CORRUPT": ("store_damaged", "the database is damaged", "restore a backup; .recover may save the rest"),
    "SQLITE_BUSY": ("busy", "another program has the file locked", "close it there, then try again"),
    "SQLITE_LOCKED": ("busy", "another program has the file locked", "close it there, then try again"),
    "SQLITE_IOERR": ("store_unreachable", "the disk does not work", "look at the system's log"),
    "SQLITE_TOOBIG": ("invalid", "the value is too large for SQLite", "keep it as an artifact"),
}


def explain(error: sqlite3.Error, path: str) -> HoldfastError:
    """SQLite's error in our words; one we do not know is told as it is."""
    name = getattr(error, "sqlite_errorname", "") or ""
    for prefix, (code, what, hint) in _EXPLAINED.items():
        if name.startswith(prefix):
            return HoldfastError(code, f"{path}: {what}", hint)
    return HoldfastError("internal", f"{path}: {error}", "please report it")
