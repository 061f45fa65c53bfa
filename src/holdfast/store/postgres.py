"""The work in PostgreSQL: one writing connection for all callers of a host, row locks, the server's clock.

A restart of the server is waited out. All that callers in line decide on remembered rows is one transaction of one
round trip; every other change and transaction is one of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Self, TypeVar

from ..model.errors import HoldfastError
from ..model.limits import STORE_WAIT_S
from ..model.work.store_setting import without_password
from . import queries
from .base import Change, Query, Row, Step, Transaction
from .group_commit import GroupCommit, Job, LineStore, Readers, closed
from .migrations import VERSIONS, all_migrations, outstanding, statements
from .postgres_connection import Away, Connection, Refused, translate
from .remembered import Guess, Remembered

__all__ = ["PostgresStore", "translate"]

T = TypeVar("T")
log = logging.getLogger("holdfast.store")

_WORDS = {"int": "BIGINT", "bytes": "BYTEA", "strict": "", "server": ""}
_READERS = 2  # connections that read: a long look keeps no short one waiting
_PAUSE_S, _PAUSE_MAX_S = 0.05, 2.0  # between attempts, doubling
_CLASHES_MAX = 10  # a transaction that lost a deadlock is run again so often
_CLASH = frozenset({"40001", "40P01"})
_MIGRATION_LOCK = 0x686F6C64  # "hold": two processes that open a new database at once take turns
_BEGIN, _COMMIT, _ROLLBACK = Query("BEGIN"), Query("COMMIT"), Query("ROLLBACK")
_BEGIN_READING = Query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


class PostgresStore(LineStore):
    """`await PostgresStore.open(url)`; any number of coroutines and threads may write at the same time."""

    def __init__(self, url: str, wait_s: float = STORE_WAIT_S) -> None:
        self.url = url
        self.shown = without_password(url)
        self.wait_s = wait_s
        self._writer: Connection | None = None
        self._remembered = Remembered()
        self._ahead = 0  # of the server's clock before ours, in microseconds: for times that are shown, never compared
        self._idle: list[Connection] = []  # that read
        self._free = threading.Semaphore(_READERS)
        self._pooled = False

    @classmethod
    async def open(
        cls, url: str, migrations: list[tuple[int, str]] | None = None, *, wait_s: float = STORE_WAIT_S
    ) -> Self:
        self = cls(url, wait_s)
        await asyncio.to_thread(self._open, migrations or all_migrations())
        self.line = GroupCommit(self._commit, end=self._end)
        self.readers = Readers(self._look, end=self._end_reading, threads=_READERS)
        return self

    def prepare(self) -> None:
        """Bring the schema up to date, and leave."""
        self._open(all_migrations())
        self._drop()

    def _open(self, known: list[tuple[int, str]]) -> None:
        try:
            connection = self._connected()
            try:
                self._migrate(connection, known)  # a wrong address is told at once, not waited for
            except BaseException:
                self._drop()
                raise
        except (Away, Refused) as e:
            raise self.explain(e) from None

    def _migrate(self, connection: Connection, known: list[tuple[int, str]]) -> None:
        has = connection.ask([Query("SELECT to_regclass('schema_version') IS NOT NULL")])[0][0][0]
        version = connection.ask([Query("SELECT MAX(version) FROM schema_version")])[0][0][0] if has else 0
        if not outstanding(version or 0, known, self.shown):
            return
        lock = Query("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))
        connection.ask([_BEGIN, lock, Query(statements(VERSIONS, _WORDS)[0])])
        version = connection.ask([Query("SELECT COALESCE(MAX(version), 0) FROM schema_version")])[0][0][0]
        for number, sql in outstanding(version, known, self.shown):
            for statement in statements(sql, _WORDS):
                connection.ask([Query(statement)])
            connection.ask([Query("INSERT INTO schema_version VALUES (?, {now})", (number,))])
        connection.ask([_COMMIT])

    # -- under the turn --------------------------------------------------------------------------------------------

    def _end(self) -> None:
        self._drop()

    def _drop(self) -> None:
        self._remembered.forget()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _connected(self) -> Connection:
        if self._writer is None:
            self._writer = self._connect()
        return self._writer

    def _connect(self) -> Connection:
        made = Connection(self.url)
        if made.pooled and not self._pooled:
            self._pooled = True
            log.info("%s is behind a pooler: each transaction brings its own settings", self.shown)
        return made

    def _commit(self, batch: list[Job]) -> None:
        """What is decided on remembered rows shares one commit; each of the others has its own."""
        with self._telling(batch):
            for job in self._patiently(partial(self._guessed, batch), self._drop):
                with self._telling([job]):
                    self._patiently(partial(self._alone, job), self._drop)

    @contextlib.contextmanager
    def _telling(self, jobs: list[Job]) -> Iterator[None]:
        """Whatever is raised belongs to these callers, not to this thread."""
        try:
            yield
        except BaseException as e:  # noqa: BLE001 - see above
            for job in jobs:
                job.error = job.error or e

    def _patiently(self, work: Callable[[], T], drop: Callable[[], None]) -> T:
        """Run it; again when it lost a deadlock, and again when the server went away, also in the commit.

        The last is why what is written recognises what it did before: the commit may have been done.
        """
        clashes, waited_since, pause = 0, 0.0, _PAUSE_S
        while True:
            try:
                value = work()
            except Refused as e:
                if e.code not in _CLASH:
                    raise self.explain(e) from e
                clashes += 1
                if clashes > _CLASHES_MAX:
                    raise HoldfastError("busy", f"{self.shown}: {e}", "try again") from None
            except Away as e:
                drop()
                now = time.monotonic()
                if not waited_since:
                    waited_since = now
                    log.warning("%s went away (%s); waiting up to %.0f s for it", self.shown, e, self.wait_s)
                if now - waited_since >= self.wait_s or self._closed:
                    raise self.explain(e) from None
                time.sleep(pause)
                pause = min(pause * 2, _PAUSE_MAX_S)
            else:
                if waited_since:
                    log.warning("%s is back after %.1f s", self.shown, time.monotonic() - waited_since)
                return value

    def _guessed(self, batch: list[Job]) -> list[Job]:
        """Write what remembered rows decide, in one transaction; the jobs that are left to do."""
        now = time.time_ns() // 1000 + self._ahead
        guesses, left, runs = list[tuple[Job, Guess]](), list[Job](), set[str]()
        for job in batch:
            # One of a run: the next is decided on what this one has written.
            guess = None
            if isinstance(job.work, Change) and job.work.run not in runs:
                runs.add(job.work.run)
                guess = self._remembered.guess(job.work, now)
            if guess is None:
                left.append(job)
            else:
                guesses.append((job, guess))
        if not guesses:
            return left
        connection = self._connected()
        asked = [*connection.opening, *(_guarded(guess) for _, guess in guesses)]
        try:
            found = connection.ask(asked)[len(connection.opening) :]
        except Refused:  # another host was quicker, or worse: each is asked for alone, and told
            return batch
        for (job, guess), rows in zip(guesses, found, strict=True):
            if rows:
                job.value = guess.answer
                self._remembered.keep(guess.rows, guess.put)
                self._ahead = rows[0][0] - time.time_ns() // 1000
            else:
                left.append(job)
        return left

    def _alone(self, job: Job) -> None:
        connection = self._connected()
        if isinstance(job.work, Change):
            self._change(connection, job, job.work)
        else:
            job.value = self._transaction(connection, job.work, _BEGIN)

    def _change(self, connection: Connection, job: Job, change: Change[Any]) -> None:
        """Two round trips: lock and read, write and commit. A second of the same run may be decided on the first's."""
        if (guess := self._remembered.guess(change, time.time_ns() // 1000 + self._ahead)) is not None:
            try:
                found = connection.ask([*connection.opening, _guarded(guess)])[-1]
            except Refused:
                found = []
            if found:
                job.value = guess.answer
                self._remembered.keep(guess.rows, guess.put)
                return
        lock = next(queries.held(change.run))
        *_, held, rows = connection.ask([_BEGIN, *connection.opening, lock, queries.to_read(change)])
        try:
            known = queries.as_read(queries.as_held(change.run, held), rows)
            value, put = change.decide(known)
        except BaseException:
            connection.ask([_ROLLBACK])
            raise
        connection.ask([*queries.to_write(put), _COMMIT])
        job.value = value
        self._remembered.keep(known, put)

    def _transaction(self, connection: Connection, make: Callable[[], Transaction[T]], begin: Query) -> T:
        transaction, first = make(), [begin, *connection.opening]
        try:
            query = next(transaction)
            while True:
                rows: list[Row] = connection.ask([*first, query])[-1]
                first = []
                query = transaction.send(rows)
        except StopIteration as end:
            if not first:
                connection.ask([_COMMIT])
            value: T = end.value
            return value
        except (Away, Refused):
            raise  # the server has rolled back
        except BaseException:
            if not first:
                connection.ask([_ROLLBACK])
            raise
        finally:
            transaction.close()

    # -- reading ---------------------------------------------------------------------------------------------------

    def _look(self, job: Job) -> None:
        assert not isinstance(job.work, Change)
        with self._telling([job]), self._free:
            job.value = self._patiently(partial(self._read, job.work), self._end_reading)

    def _read(self, transaction: Callable[[], Transaction[T]]) -> T:
        if self._closed:
            raise closed()
        connection = self._idle.pop() if self._idle else self._connect()
        try:
            value = self._transaction(connection, transaction, _BEGIN_READING)
        except Away:
            connection.close()
            raise
        except BaseException:
            self._idle.append(connection)
            raise
        self._idle.append(connection)
        return value

    def _end_reading(self) -> None:
        while self._idle:
            self._idle.pop().close()

    # -- words -----------------------------------------------------------------------------------------------------

    def explain(self, error: Exception) -> HoldfastError:
        """An error of the server or of the way to it, in our words."""
        if not isinstance(error, Refused):
            words = f"cannot reach {self.shown}: {error}"
            return HoldfastError("store_unreachable", words, "is the server up, and the URL right?")
        code, what, hint = _EXPLAINED.get(error.code, ("internal", str(error), "please report it"))
        return HoldfastError(code, f"{self.shown}: {what or error}", hint)


_EXPLAINED = {
    "53100": ("store_full", "the disk is full", "free some space on the server"),
    "25006": ("store_readonly", "it is read-only", "use the primary server"),
    "42501": ("store_denied", "", "grant this user the right"),
    "55P03": ("busy", "a lock is held", "try again; pg_locks says by which connection"),
}
_STEP_INTS = frozenset({"epoch", "tries", "begun_at", "ended_at", "doubt_since", "doubt_until", "seq", "at"})


def _values(columns: tuple[str, ...]) -> str:
    return ", ".join(f"?::{'bigint' if name in _STEP_INTS else 'text'}" for name in columns)


_HELD = (
    "held AS MATERIALIZED (SELECT lease_until FROM attempt WHERE id = ? AND epoch = ?::bigint AND ended_at IS NULL"
    " {for_update})"
)
_OK = (
    "ok AS MATERIALIZED (SELECT now FROM (SELECT lease_until, {now} AS now FROM held OFFSET 0) t"
    " WHERE now < lease_until AND NOT EXISTS (SELECT 1 FROM log WHERE run = ? AND seq = ?::bigint))"
)


@lru_cache(maxsize=64)  # shapes: one new step or none, up to two changed ones, up to two entries
def _guard(new: int, changed: int, entries: int) -> str:
    """One statement that writes a guess where its guard holds, and else nothing; a row with the clock, or none.

    The clock is read once the lock is held. PostgreSQL shows a statement what was there when it began, and only the
    locked row as it is now: an entry that came in between breaks the number's key, and all of the batch is undone.
    """
    parts, source = [_HELD, _OK], "ok"
    if new:
        columns = ", ".join(Step._fields)
        parts.append(
            f"new AS (INSERT INTO step ({columns}) SELECT {_values(Step._fields)} FROM ok ON CONFLICT DO NOTHING"
            " RETURNING 1)"
        )
        source = "new"
    for n in range(changed):
        moving = ", ".join(f"{name} = {_values((name,))}" for name in queries.MOVING)
        parts.append(f"moved{n} AS (UPDATE step SET {moving} FROM {source} WHERE step.run = ? AND step.key = ?)")
    for n in range(entries):
        columns, returned = ", ".join(queries.ENTRY), " RETURNING 1" if not (new or changed) else ""
        conflict = " ON CONFLICT (run, request) WHERE request IS NOT NULL DO NOTHING" if returned else ""
        inserted = f"INSERT INTO log ({columns}) SELECT {_values(queries.ENTRY)} FROM {source}"
        parts.append(f"entry{n} AS ({inserted}{conflict}{returned})")
    final = "new" if new else "ok" if changed else "entry0"
    return f"WITH {', '.join(parts)} SELECT ok.now FROM ok" + ("" if final == "ok" else f", {final}")


def _guarded(guess: Guess) -> Query:
    held, put, entry = guess.rows.held, guess.put, guess.put.log[0]
    args = [held.attempt, held.epoch, entry.run, entry.seq]
    for step in put.new:
        args += step
    for step in put.changed:
        args += queries.moved(step)
    for one in put.log:
        args += one
    return Query(_guard(len(put.new), len(put.changed), len(put.log)), tuple(args))
