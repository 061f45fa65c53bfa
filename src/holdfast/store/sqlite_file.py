"""The SQLite file itself: opened as durable as the interface promises, brought up to date, its errors in our words."""

from __future__ import annotations

import os
import sqlite3
import time

from ..model.errors import HoldfastError
from .migrations import VERSIONS, outstanding, statements

_WORDS = {"int": "INTEGER", "bytes": "BLOB", "strict": " STRICT"}
_BUSY_MS = 10_000  # another process with the file open (a backup, the sqlite3 shell) is waited for this long
_STATEMENTS_KEPT = 256  # prepared statements: more than the work plane has
# 16 MiB of log are folded in within a commit at the latest, which costs that commit three flushes, once in some 300
# steps. A longer log costs more than it saves: until it has its length, it is lengthened ahead of the commits, and that
# was a tenth of a step's processor time.
_WAL_PAGES_MAX = 4096
_PAGE_CACHE_KIB = 8192


def clock() -> int:
    """The database's clock, {now} in its statements: that of the one process that writes."""
    return time.time_ns() // 1000


def connect(path: str, *, read_only: bool) -> sqlite3.Connection:
    """A connection as durable as the interface promises; called on the thread that will use it."""
    database = sqlite3.connect(path, isolation_level=None, cached_statements=_STATEMENTS_KEPT, check_same_thread=False)
    database.create_function("holdfast_now", 0, clock)
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


def prepare(path: str, known: list[tuple[int, str]]) -> sqlite3.Connection:
    """Open, or say in one line why not; and bring the schema up to date."""
    try:
        # Made by us, so that nobody else can read it, not even for a moment; the log gets the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as e:
        code = "store_full" if e.errno == 28 else "store_readonly"
        raise HoldfastError(
            code, f"cannot write {path}: {e.strerror}", "check the folder, or set HOLDFAST_STORE"
        ) from None
    database = None
    try:
        database = connect(path, read_only=False)
        _migrate(database, known, path)
    except BaseException as e:
        if database is not None:
            database.close()
        if isinstance(e, sqlite3.Error):
            raise explain(e, path) from e
        raise
    return database


def _migrate(database: sqlite3.Connection, known: list[tuple[int, str]], path: str) -> None:
    has = database.execute("SELECT COUNT(*) FROM sqlite_master WHERE name = 'schema_version'").fetchone()[0]
    version = database.execute("SELECT MAX(version) FROM schema_version").fetchone()[0] if has else 0
    if not outstanding(version or 0, known, path):
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        database.execute(statements(VERSIONS, _WORDS)[0])
        version = database.execute("SELECT COALESCE(MAX(version), 0) FROM schema_version").fetchone()[0]
        for number, sql in outstanding(version, known, path):
            for statement in statements(sql, _WORDS):
                database.execute(statement)
            database.execute("INSERT INTO schema_version VALUES (?, holdfast_now())", (number,))
        database.execute("COMMIT")
    except BaseException:
        if database.in_transaction:
            database.execute("ROLLBACK")
        raise


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
