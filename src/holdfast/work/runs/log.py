"""The run's log and what stands beside it: entries by people and workers, the sessions a run uses, its steps."""

from __future__ import annotations

from typing import Any, TypeVar

from ...model.errors import invalid
from ...model.times import rfc3339_us
from ...store import queries
from ...store.base import Change, LogEntry, Put, Query, Rows, Transaction
from ...wire import json_values
from ..steps import report
from . import lease

Json = dict[str, Any]
T = TypeVar("T")
_FOREVER = 1 << 62  # past every log entry


def added(run: str, kind: str, body: str, epoch: int | None, by: str, step: str | None, request: str) -> Change[int]:
    """One more entry. Its number; a repeated request gets the number it got."""

    def decide(rows: Rows) -> tuple[int, Put]:
        if rows.before is not None:
            return rows.before, Put()
        if epoch is not None:
            lease.check(rows.held, epoch)
        entry = LogEntry(run, rows.last + 1, kind, rows.held.now, by, epoch or 0, step, body, request)
        return entry.seq, Put(log=(entry,))

    return Change(run, (), decide, request)


def with_why(body: Any, why: str | None) -> Any:
    """What somebody says, and why."""
    if why is None:
        return body
    return {**body, "why": why} if isinstance(body, dict) else {"text": body, "why": why}


def explained(
    deed: Transaction[T], run: str, action: str, why: str | None, epoch: int | None, by: str, request: str
) -> Transaction[T]:
    """Do it; and where it was said why, that stands in the log, from the same commit on."""
    done = yield from deed
    if why is not None:
        body = json_values.encode({"text": why, "action": action}, "the reason")
        yield from queries.decided(added(run, "reasoning", body, epoch, by, None, request))
    return done


def entries(run: str, after: int, upto: int | None, limit: int) -> Transaction[list[Json]]:
    yield from queries.seen(run)
    found = yield from queries.log(run, after, _FOREVER if upto is None else upto, limit)
    return [describe(entry) for entry in found]


def describe(entry: LogEntry) -> Json:
    return {
        "seq": entry.seq,
        "kind": entry.kind,
        "at": rfc3339_us(entry.at),
        "by": entry.by,
        "epoch": entry.epoch,
        "step": entry.step,
        "body": json_values.decode(entry.body),
    }


def use_session(run: str, session: str, generation: int, offset: int, epoch: int | None) -> Transaction[Json]:
    if generation < 1 or offset < 0:
        raise invalid("a session's generation begins at 1 and its offsets at 0", "hold status SESSION --json")
    held = yield from queries.held(run)
    if epoch is not None:
        lease.check(held, epoch)
    yield Query(
        "INSERT INTO run_session (run, session, generation, from_offset, at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (run, session, generation) DO NOTHING",
        (run, session, generation, offset, held.now),
    )
    return {"run": run, "session": session, "generation": generation}


def one_step(run: str, key: str) -> Transaction[Json | None]:
    held = yield from queries.seen(run)
    step = yield from queries.step(run, key)
    return None if step is None else report.report(step, held.now)


def all_steps(run: str, state: str | None) -> Transaction[list[Json]]:
    held = yield from queries.seen(run)
    found = yield from queries.steps(run, state)
    return [report.report(step, held.now) for step in found]
