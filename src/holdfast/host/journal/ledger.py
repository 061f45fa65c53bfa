"""`host.db`: what this host knows of operators, grants, questions and what was done. One thread writes, in groups.

A write is durable when it returns (WAL, synchronous=FULL). What comes while a commit is under way shares the next one,
so that many small writes cost few waits for the disk. Reads run on a thread of their own and never wait for a writer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ...model.errors import HoldfastError
from ...system.disk_reserve import Reserve

T = TypeVar("T")
_Job = tuple[Callable[[sqlite3.Connection], Any], "asyncio.Future[Any]"]
_Outcome = tuple["asyncio.Future[Any]", Any, "Exception | None"]

_GROUP_MAX = 256  # writes that share a commit: far more than ever wait, and a bounded transaction
_BUSY_MS = 10_000  # a reader (a backup, a check) holds its lock for milliseconds

# Each script once, in this order, for ever: a new need is a new script at the end. Other files' tables are here too,
# because the order is what makes an older home readable.
MIGRATIONS: list[str] = [
    # 1: the journal. The session column finds entries; the check compares it with what the entry says.
    """
    CREATE TABLE entries (n INTEGER PRIMARY KEY, body BLOB NOT NULL, hash BLOB NOT NULL, session TEXT);
    CREATE INDEX entries_session ON entries (session, n) WHERE session IS NOT NULL;
    CREATE TABLE heads (n INTEGER PRIMARY KEY, hash TEXT NOT NULL, at REAL NOT NULL, signature TEXT NOT NULL);
    CREATE TABLE spooled (session TEXT NOT NULL, generation INTEGER NOT NULL, upto INTEGER NOT NULL,
                          PRIMARY KEY (session, generation)) WITHOUT ROWID;
    """,
    # 2: operators and grants. A grant's body is the bytes that were signed.
    """
    CREATE TABLE operators (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, key TEXT NOT NULL,
                            by TEXT NOT NULL, at REAL NOT NULL, revoked_at REAL) WITHOUT ROWID;
    CREATE TABLE grants (id TEXT PRIMARY KEY, operator TEXT NOT NULL, body BLOB NOT NULL, signature TEXT NOT NULL,
                         revoked_at REAL, revoked_by TEXT) WITHOUT ROWID;
    """,
    # 3: the inbox. `changed` numbers an item's last change; `request` is what it was asked for: asked again, it is
    # the same item. The body is the item as JSON.
    """
    CREATE TABLE asks (id TEXT PRIMARY KEY, changed INTEGER NOT NULL UNIQUE, state TEXT NOT NULL, request TEXT UNIQUE,
                       body TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX asks_state ON asks (state, changed);
    """,
    # 4: tokens of agents that come over HTTP. Of a token there is only its hash.
    """
    CREATE TABLE tokens (hash TEXT PRIMARY KEY, operator TEXT NOT NULL, by TEXT NOT NULL, at REAL NOT NULL, until REAL,
                         ended_at REAL) WITHOUT ROWID;
    """,
    # 5: browsers that are logged in to the console, and the links that log one in. Only hashes, as above.
    """
    CREATE TABLE logins (hash TEXT PRIMARY KEY, kind TEXT NOT NULL, at REAL NOT NULL, until REAL NOT NULL,
                         ended_at REAL) WITHOUT ROWID;
    """,
    # 6: whose browser it is. Those of before are the owner's, which NULL means.
    """
    ALTER TABLE logins ADD COLUMN operator TEXT;
    """,
]


def connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
    if read_only:
        db.execute("PRAGMA query_only=ON")
        return db
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    return db


def migrate(db: sqlite3.Connection) -> None:
    """Bring the tables up to date, all of it or nothing."""
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > len(MIGRATIONS):
        raise HoldfastError("failed", "host.db was written by a newer version", "upgrade holdfast, then hold up")
    for number in range(version, len(MIGRATIONS)):
        # executescript ends an open transaction by itself, so the script brings its own.
        db.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[number]} PRAGMA user_version={number + 1}; COMMIT;")


class Ledger:
    """The one writer of host.db."""

    def __init__(self, path: str, reserve: Reserve | None = None) -> None:
        self.path, self._reserve = path, reserve
        self._loop = asyncio.get_running_loop()
        self._writes: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    async def open(self) -> None:
        """Make or upgrade the tables; raises where that is not possible."""
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        opened: asyncio.Future[None] = self._loop.create_future()
        self._begin("ledger", self._write_loop, opened)
        await opened

    def write(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Run `work` in a transaction; the result comes when it is durable. It is undone alone where it raises."""
        return self._put(self._writes, work)

    def read(self, work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        """Run `work` on a connection that cannot write."""
        if len(self._threads) < 2:
            self._begin("ledger-read", self._read_loop)
        return self._put(self._reads, work)

    def _put(self, to: queue.SimpleQueue[_Job | None], work: Callable[[sqlite3.Connection], T]) -> Awaitable[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        to.put((work, future))
        return future

    def _begin(self, name: str, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    # -- on the threads

    def _write_loop(self, opened: asyncio.Future[None]) -> None:
        try:
            db = connect(self.path)
            migrate(db)
        except (sqlite3.Error, HoldfastError) as e:
            error = e if isinstance(e, HoldfastError) else _failed(e)
            self._tell([(opened, None, error)])
            return
        self._tell([(opened, None, None)])
        with contextlib.closing(db):
            while (job := self._writes.get()) is not None:
                jobs, ends = [job], False
                while len(jobs) < _GROUP_MAX and not self._writes.empty():
                    more = self._writes.get()
                    if more is None:
                        ends = True
                        break
                    jobs.append(more)
                self._tell(self._committed(db, jobs))
                if ends:
                    break
            db.execute("PRAGMA optimize")

    def _committed(self, db: sqlite3.Connection, jobs: list[_Job]) -> list[_Outcome]:
        """What was done already is written down also on a full disk: there is room for that."""
        try:
            return _commit(db, jobs)
        except sqlite3.Error as e:
            if not (_is_full(e) and self._reserve is not None and self._reserve.give_up()):
                return [(future, None, _failed(e)) for _, future in jobs]
        try:
            return _commit(db, jobs)
        except sqlite3.Error as e:
            return [(future, None, _failed(e)) for _, future in jobs]

    def _read_loop(self) -> None:
        with contextlib.closing(connect(self.path, read_only=True)) as db:
            while (job := self._reads.get()) is not None:
                work, future = job
                try:
                    self._tell([(future, work(db), None)])
                except Exception as e:  # noqa: BLE001  (raised again where it was asked for)
                    self._tell([(future, None, e)])

    def _tell(self, outcomes: list[_Outcome]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(_settle, outcomes)

    def close(self) -> None:
        """Finish what was asked for, and let go of the file."""
        self._writes.put(None)
        self._reads.put(None)
        for thread in self._threads:
            thread.join(timeout=10)


def _commit(db: sqlite3.Connection, jobs: list[_Job]) -> list[_Outcome]:
    """All in one transaction; a job that raises is rolled back alone, a commit that fails takes all with it."""
    outcomes: list[_Outcome] = []
    try:
        db.execute("BEGIN IMMEDIATE")
        for work, future in jobs:
            db.execute("SAVEPOINT job")
            try:
                outcomes.append((future, work(db), None))
            except Exception as e:
                if isinstance(e, sqlite3.Error) and _is_full(e):
                    raise  # nobody's own mistake
                db.execute("ROLLBACK TO job")
                outcomes.append((future, None, e))
            db.execute("RELEASE job")
        db.execute("COMMIT")
    except sqlite3.Error:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    return outcomes


def _is_full(e: sqlite3.Error) -> bool:
    """Also of SQLite's index beside the log, for which it has a code of its own."""
    return getattr(e, "sqlite_errorcode", 0) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)


def _settle(outcomes: list[_Outcome]) -> None:
    for future, value, error in outcomes:
        if future.done():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)


def _failed(e: sqlite3.Error) -> HoldfastError:
    code = "store_full" if _is_full(e) else "failed"
    return HoldfastError(code, f"the host's ledger cannot be written: {e}", "see the disk's space, and hold doctor")
