"""The queries that transactions are made of, each a small generator; the rules that use them are in `work`."""

from __future__ import annotations

from ..model.errors import not_found
from .base import Held, LogEntry, Query, Run, Step, Transaction

_STEP = ", ".join(Step._fields)
_HELD = "id, task, n, worker, instance, epoch, lease_until, ended_at"
_RUN = ", ".join(
    "a.task" if f == "task" else f"r.{f}" for f in Run._fields
)  # the task is the attempt's, and told with the run


def now() -> Transaction[int]:
    rows = yield Query("SELECT {now}")
    return int(rows[0][0])


def held(run: str) -> Transaction[Held]:
    """Lock the run's attempt: who holds the lease, and the time now that the lock is held. The start of every write."""
    rows = yield Query(
        f"WITH held AS MATERIALIZED (SELECT {_HELD} FROM attempt"
        " WHERE id = (SELECT attempt FROM run WHERE id = ?) {for_update})"
        f" SELECT {_HELD}, {{now}} FROM held",
        (run,),
    )
    if not rows:
        raise not_found(f"no run {run[:80]!r}", "begin one first")
    return Held(*rows[0])


def run(run: str) -> Transaction[Run]:
    rows = yield Query(f"SELECT {_RUN} FROM run r JOIN attempt a ON a.id = r.attempt WHERE r.id = ?", (run,))
    if not rows:
        raise not_found(f"no run {run[:80]!r}", "begin one first")
    return Run(*rows[0])


def step(run: str, key: str) -> Transaction[Step | None]:
    rows = yield Query(f"SELECT {_STEP} FROM step WHERE run = ? AND key = ?", (run, key))
    return Step(*rows[0]) if rows else None


def append(
    run: str,
    kind: str,
    body: str,
    *,
    at: int,
    epoch: int,
    by: str | None = None,
    step: str | None = None,
    request: str | None = None,
) -> Transaction[int]:
    """One more log entry, under the attempt's lock; its number. A repeated request gets the number it got."""
    rows = yield Query(
        "INSERT INTO log (run, seq, kind, at, by_whom, epoch, step, request, body)"
        " SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, ?, ?, ?, ?, ? FROM log WHERE run = ? RETURNING seq",
        (run, kind, at, by, epoch, step, request, body, run),
    )
    return int(rows[0][0])


def appended(run: str, request: str) -> Transaction[int | None]:
    """The number of the entry that this request wrote before."""
    rows = yield Query("SELECT seq FROM log WHERE run = ? AND request = ?", (run, request))
    return int(rows[0][0]) if rows else None


def log(run: str, after: int, upto: int, limit: int) -> Transaction[list[LogEntry]]:
    rows = yield Query(
        "SELECT run, seq, kind, at, by_whom, epoch, step, body FROM log"
        " WHERE run = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
        (run, after, upto, limit),
    )
    return [LogEntry(*row) for row in rows]


def seen(run: str) -> Transaction[Held]:
    """Who holds the lease, looked at without a lock: for answers, not for decisions to write."""
    rows = yield Query(
        f"SELECT {_HELD}, {{now}} FROM attempt WHERE id = (SELECT attempt FROM run WHERE id = ?)", (run,)
    )
    if not rows:
        raise not_found(f"no run {run[:80]!r}", "begin one first")
    return Held(*rows[0])


def steps(run: str, state: str | None = None) -> Transaction[list[Step]]:
    """In the order in which they were begun."""
    rows = yield Query(
        f"SELECT {_STEP} FROM step WHERE run = ?" + (" AND state = ?" if state else "") + " ORDER BY begun_at, key",
        (run, state) if state else (run,),
    )
    return [Step(*row) for row in rows]
