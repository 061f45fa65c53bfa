"""The queries that transactions are made of, each a small generator; the rules that use them are in `work`."""

from __future__ import annotations

from typing import Any, TypeVar

from ..model.errors import not_found
from .base import Change, Held, LogEntry, Put, Query, Row, Rows, Run, Step, Transaction

T = TypeVar("T")
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
    return as_held(run, rows)


def as_held(run: str, rows: list[Row]) -> Held:
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


# A step's columns that its first entry settles for good; the others move.
FIXED = ("run", "key", "effect", "action", "args_hash", "args", "idem_key")
MOVING = tuple(name for name in Step._fields if name not in FIXED)
ENTRY = ("run", "seq", "kind", "at", "by_whom", "epoch", "step", "body", "request")
_AT = tuple(Step._fields.index(name) for name in (*MOVING, "run", "key"))
INSERT_STEP = f"INSERT INTO step ({_STEP}) VALUES ({', '.join('?' * len(Step._fields))})"
UPDATE_STEP = f"UPDATE step SET {', '.join(f'{name} = ?' for name in MOVING)} WHERE run = ? AND key = ?"
INSERT_ENTRY = f"INSERT INTO log ({', '.join(ENTRY)}) VALUES ({', '.join('?' * len(ENTRY))})"


def moved(step: Step) -> tuple[Any, ...]:
    """The arguments of UPDATE_STEP."""
    return tuple(step[n] for n in _AT)


def to_read(change: Change[Any]) -> Query:
    """What the rule of a change decides on, beside the lease; for a later query than the lock."""
    return Query(_READS[len(change.keys)], (change.request, *change.keys, change.run))


def _read(keys: int) -> str:
    return (
        "SELECT COALESCE((SELECT MAX(seq) FROM log WHERE run = r.id), 0),"
        " (SELECT seq FROM log WHERE run = r.id AND request = ?), "
        + ", ".join(f"s.{name}" for name in Step._fields)
        + f" FROM run r LEFT JOIN step s ON s.run = r.id AND s.key IN ({', '.join('?' * keys) or 'NULL'})"
        " WHERE r.id = ?"
    )


_READS = [_read(keys) for keys in range(3)]  # no change names more steps than two


def as_read(held: Held, found: list[Row]) -> Rows:
    last, before = found[0][:2]
    return Rows(held, int(last), {row[3]: Step(*row[2:]) for row in found if row[2] is not None}, before)


def to_write(put: Put) -> list[Query]:
    """The statements of a change, in order."""
    return [
        *(Query(INSERT_STEP, step) for step in put.new),
        *(Query(UPDATE_STEP, moved(step)) for step in put.changed),
        *(Query(INSERT_ENTRY, entry) for entry in put.log),
    ]


def decided(change: Change[T]) -> Transaction[T]:
    """A change as a transaction of its own, or as a part of one: lock, read, decide, write."""
    locked = yield from held(change.run)
    answer, put = change.decide(as_read(locked, (yield to_read(change))))
    for query in to_write(put):  # noqa: UP028 - a list is not sent the rows
        yield query
    return answer


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
