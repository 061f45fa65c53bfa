"""What the runs and attempts of a task say of it: a run that ends by itself, and what is known of an attempt."""

from __future__ import annotations

from typing import Any

from ...model.errors import HoldfastError
from ...model.work import policy
from ...store import queries
from ...store.base import Query, Transaction
from ...wire import json_values
from ..runs import lease
from ..runs import rows as runs
from . import rows as task_rows
from .attempts import turn
from .changes import failed
from .rows import Asked

Json = dict[str, Any]


def end_run(run: str, epoch: int | None, state: str, outcome: str, asked: Asked) -> Transaction[Json]:
    """`run_end` of any run. One that failed is its task's failed attempt; one that was cancelled pauses its task."""
    kept = yield from queries.run(run)
    of = None if kept.task is None else (yield Query("SELECT 1 FROM task WHERE key = ?", (kept.task,)))
    if not of or kept.task is None or state == "done":
        return (yield from runs.end(run, epoch, state, outcome, asked.by, asked.request, asked.why))
    at = yield from turn(kept.task, asked)
    ended = yield from runs.end(run, epoch, state, outcome, asked.by, asked.request, asked.why)
    if at.again or at.task.run != run or at.task.status not in ("active", "paused") or not at.open:
        return ended
    if state == "failed":
        made = policy.check_classification(None, detail=asked.why or "", earlier=at.task.attempts - at.task.spent - 1)
        yield Query(
            "UPDATE attempt SET classification = COALESCE(classification, ?) WHERE id = ?",
            (json_values.encode(made, "the classification"), at.task.attempt),
        )
        yield from failed(at, made, asked)
    elif at.task.status == "active":
        yield from task_rows.write(kept.task, at.now, status="paused", taken_by=None)
        yield from task_rows.note(kept.task, "pause", "paused", asked, at.now, run=run)
    return ended


def note_attempt(
    run: str, epoch: int | None, changes: Any, backend: str | None, classification: Json | None
) -> Transaction[Json]:
    """What is known of an attempt besides its end: which files it changed, who did it, what went wrong."""
    held = yield from queries.held(run)
    if epoch is not None and held.ended_at is None:
        lease.check(held, epoch)
    elif epoch is None and lease.alive(held) and not lease.by_hand(held.worker):
        raise HoldfastError("busy", f"the run is held by {held.worker}", "only it may say so while its lease lasts")
    made = None if classification is None else policy.check_classification(classification, earlier=held.n - 1)
    yield Query(
        "UPDATE attempt SET changes = COALESCE(?, changes), backend = COALESCE(?, backend),"
        " classification = COALESCE(?, classification) WHERE id = ?",
        (
            None if changes is None else json_values.encode(changes, "the changes"),
            backend,
            None if made is None else json_values.encode(made, "the classification"),
            held.attempt,
        ),
    )
    if backend is not None:
        yield Query("UPDATE task SET backend = ? WHERE attempt = ?", (backend, held.attempt))
    return {"run": run, "attempt": held.attempt, "n": held.n}
