"""All of the work from a SQLite file into an empty PostgreSQL database: one transaction, checked by counts and hashes.

The source is read in one consistent state and left as it is. What was copied is read back from the server before the
commit, and the file is looked at once more: had somebody written meanwhile, nothing is kept.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import psycopg

from ..model.errors import HoldfastError, not_found
from .postgres import PostgresStore
from .postgres_connection import as_ours

Server = psycopg.Connection[Any]
_ROWS = 100  # read back at once: rows hold up to 8 MiB, most hold a few hundred bytes
_OWN = frozenset({"schema_version", "guard"})  # each database has its own


def copy(path: str, url: str) -> list[dict[str, Any]]:
    """Copy it; the tables with their counts and hashes, the same on both sides."""
    source = _open(path)
    try:
        store = PostgresStore(url)
        store.prepare()  # with its schema
        try:
            with psycopg.connect(url) as server:
                server.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                return _copy(source, path, server, store.shown)
        except psycopg.Error as e:  # rolled back: nothing was kept
            raise store.explain(as_ours(e)) from e
    finally:
        source.close()


def _open(path: str) -> sqlite3.Connection:
    try:
        source = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        source.execute("SELECT COUNT(*) FROM schema_version")
    except sqlite3.Error as e:
        raise not_found(f"there is no work in {path}: {e}", "hold work ls looks at it") from None
    return source


def _copy(source: sqlite3.Connection, path: str, server: Server, shown: str) -> list[dict[str, Any]]:
    source.execute("BEGIN")  # one state for all that follows
    _check_leases(source)
    tables = in_order(source)
    report = []
    with server.transaction():
        _check_versions(source, server, path, shown)
        for table in tables:
            if _value(server, f'SELECT EXISTS (SELECT 1 FROM "{table}")'):
                raise HoldfastError("conflict", f"{shown} has work in it already", "name an empty database")
        for table in tables:
            columns, key = _columns(source, table)
            rows, digest = _send(source, server, table, columns, key)
            there = _read_back(server, table, columns, key)
            if there != (rows, digest):
                raise HoldfastError(
                    "store_damaged",
                    f"{table} is not the same on {shown}: {there[0]} rows for {rows}, or other ones",
                    "nothing was kept; please report it",
                )
            report.append({"table": table, "rows": rows, "sha256": digest})
        source.execute("COMMIT")
        source.execute("BEGIN")
        again = [(table, *_digest_of(source, table)) for table in tables]
        source.execute("COMMIT")
        if again != [(r["table"], r["rows"], r["sha256"]) for r in report]:
            raise HoldfastError("busy", f"{path} was written meanwhile", "nothing was kept; stop all workers first")
    return report


def _check_leases(source: sqlite3.Connection) -> None:
    """A worker that goes on in the file would be alone with what it writes there."""
    now = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
    held = source.execute(
        f"SELECT worker, COUNT(*) FROM attempt WHERE lease_until > {now} AND ended_at IS NULL GROUP BY worker LIMIT 1"
    ).fetchone()
    if held is not None:
        raise HoldfastError("busy", f"a run is held by {held[0]}", "stop the workers first, or let the lease run out")


def _value(server: Server, sql: str) -> Any:
    found = server.execute(sql.encode()).fetchone()
    assert found is not None  # these always have a row
    return found[0]


def _check_versions(source: sqlite3.Connection, server: Server, path: str, shown: str) -> None:
    here = source.execute("SELECT MAX(version) FROM schema_version").fetchone()[0]
    there = _value(server, "SELECT MAX(version) FROM schema_version")
    if here != there:
        raise HoldfastError("store_newer", f"{path} has schema {here} and {shown} has {there}", "hold down, then again")


def in_order(source: sqlite3.Connection) -> list[str]:
    """The tables, each after those that it refers to."""
    names = [
        str(name)
        for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        if not str(name).startswith("sqlite_") and name not in _OWN
    ]
    needs = {name: {r[2] for r in source.execute(f'PRAGMA foreign_key_list("{name}")')} - {name} for name in names}
    ordered: list[str] = []
    while names:
        ready = [name for name in names if needs[name] <= set(ordered)]
        if not ready:
            raise HoldfastError("internal", f"tables refer to each other: {', '.join(names)}", "please report it")
        ordered += ready
        names = [name for name in names if name not in ready]
    return ordered


def _columns(source: sqlite3.Connection, table: str) -> tuple[list[str], list[str]]:
    """All columns, and those of the primary key, quoted."""
    about = source.execute(f'PRAGMA table_info("{table}")').fetchall()
    return [str(r[1]) for r in about], [f'"{r[1]}"' for r in sorted(about, key=lambda r: r[5]) if r[5]]


def _select(table: str, columns: Sequence[str], order: Sequence[str]) -> str:
    names = ", ".join(f'"{c}"' for c in columns)
    return f'SELECT {names} FROM "{table}" ORDER BY {", ".join(order)}'


class Digest:
    """Of rows in order, the same for the same values whichever database they come from."""

    def __init__(self) -> None:
        self.rows, self._hash = 0, hashlib.sha256()

    def add(self, row: Iterable[Any]) -> None:
        self.rows += 1
        for value in row:
            raw = value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
            kind = "n" if value is None else "b" if isinstance(value, bytes) else "i" if isinstance(value, int) else "t"
            self._hash.update(f"{kind}{len(raw)}:".encode())
            self._hash.update(raw)
        self._hash.update(b"\n")

    @property
    def value(self) -> tuple[int, str]:
        return self.rows, self._hash.hexdigest()


def _digest_of(source: sqlite3.Connection, table: str) -> tuple[int, str]:
    columns, key = _columns(source, table)
    digest = Digest()
    for row in source.execute(_select(table, columns, key)):
        digest.add(row)
    return digest.value


def _send(
    source: sqlite3.Connection, server: Server, table: str, columns: list[str], key: list[str]
) -> tuple[int, str]:
    digest = Digest()
    names = ", ".join(f'"{c}"' for c in columns)
    with server.cursor().copy(f'COPY "{table}" ({names}) FROM STDIN'.encode()) as sent:
        for row in source.execute(_select(table, columns, key)):
            digest.add(row)
            sent.write_row(row)
    return digest.value


def _read_back(server: Server, table: str, columns: list[str], key: list[str]) -> tuple[int, str]:
    """In the same order as SQLite's: by bytes, whatever language the database sorts in."""
    about = server.execute(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = %s"
        " AND table_schema = current_schema()",
        (table,),
    )
    types = dict(about.fetchall())
    order = [c + (' COLLATE "C"' if types[c.strip('"')] == "text" else "") for c in key]
    digest = Digest()
    with server.cursor("read_back", binary=True) as found:  # a few rows at a time: they hold up to 8 MiB each
        found.itersize = _ROWS
        for row in found.execute(_select(table, columns, order).encode()):
            digest.add(row)
    return digest.value
