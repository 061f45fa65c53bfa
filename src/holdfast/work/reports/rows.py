"""What the store knows of a time span: what happened to which tasks, attempts, verifications, steps, and by whom."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.limits import REPORT_EVENTS, REPORT_TASKS
from ...model.times import rfc3339
from ...store import queries
from ...store.base import Query, Transaction
from ...wire import json_values
from ..tasks import rows as task_rows

Json = dict[str, Any]


class Span(NamedTuple):
    """From `since` to before `until`, in microseconds; None: to now, and for one task, from its beginning."""

    since: int | None
    until: int | None
    project: str | None
    task: str | None


def _time(micros: int | None) -> str | None:
    return rfc3339(micros / 1e6) if micros else None


def gather(span: Span) -> Transaction[Json]:
    now = yield from queries.now()
    until = now if span.until is None else span.until
    since = span.since
    if since is None:
        found = yield Query("SELECT created_at FROM task WHERE key = ?", (span.task,))
        since = int(found[0][0]) if found else 0
    of = _Scope(span, since, until)
    touched, total = yield from _touched(of)
    tasks = []
    for key in touched:
        tasks.append((yield from _task(key, of)))  # noqa: PERF401 - a generator cannot be driven inside one
    runs = [] if span.task or span.project else (yield from _runs(of))
    attempts = yield from _attempts(of)
    return {
        "since": _time(since) or rfc3339(0),
        "until": _time(until),
        "project": span.project,
        "task": span.task,
        "totals": {
            "tasks": total,
            "events": (yield from _events(of)),
            "attempts": attempts,
            "verifications": (yield from _verifications(of)),
            "steps": (yield from _steps(of)),
            "runs": len(runs),
        },
        "people": (yield from _people(of)),
        "tasks": tasks,
        "runs": runs,
        "omitted": {"tasks": total - len(tasks)},
        "observed_at": _time(now),
    }


class _Scope:
    """The same condition for each table: of which task or project, between which moments."""

    def __init__(self, span: Span, since: int, until: int) -> None:
        self.span, self.since, self.until = span, since, until

    def where(self, task: str, at: str) -> tuple[str, tuple[Any, ...]]:
        text, args = f"{at} >= ? AND {at} < ?", (self.since, self.until)
        if self.span.task is not None:
            return f"{text} AND {task} = ?", (*args, self.span.task)
        if self.span.project is not None:
            prefix = self.span.project + "/"
            return f"{text} AND substr({task}, 1, LENGTH(?)) = ?", (*args, prefix, prefix)
        return text, args


def _touched(of: _Scope) -> Transaction[tuple[list[str], int]]:
    """Keys of tasks that something happened to, the first to be touched first; and how many there are."""
    where, args = of.where("task", "at")
    rows = yield Query(
        f"SELECT task, MIN(at) FROM task_event WHERE {where} GROUP BY task ORDER BY MIN(at), task LIMIT ?",
        (*args, REPORT_TASKS),
    )
    total = len(rows)
    if total == REPORT_TASKS:
        counted = yield Query(f"SELECT COUNT(DISTINCT task) FROM task_event WHERE {where}", args)
        total = int(counted[0][0])
    return [str(key) for key, _ in rows], total


def _task(key: str, of: _Scope) -> Transaction[Json]:
    task = yield from task_rows.task(key)
    events = yield Query(
        "SELECT at, by_whom, event, status, why FROM task_event WHERE task = ? AND at >= ? AND at < ?"
        " ORDER BY seq DESC LIMIT ?",
        (key, of.since, of.until, REPORT_EVENTS),
    )
    attempts = yield Query(
        "SELECT n, worker, backend, outcome, classification, verification, created_at, ended_at FROM attempt"
        " WHERE task = ? AND created_at < ? AND (ended_at IS NULL OR ended_at >= ?) ORDER BY n",
        (key, of.until, of.since),
    )
    names = ("at", "by", "event", "status", "why")
    return {
        "task_id": task.id,
        "key": key,
        "project": task.project,
        "title": task.title,
        "phase": task.phase,
        "status": task.status,
        "events": [dict(zip(names, (_time(e[0]), *e[1:]), strict=True)) for e in reversed(events)],
        "attempts": [_attempt(a) for a in attempts],
    }


def _attempt(row: tuple[Any, ...]) -> Json:
    n, worker, backend, outcome, classification, verification, begun, ended = row
    kind, checks = json_values.decode(classification) or {}, json_values.decode(verification) or {}
    return {
        "n": n,
        "worker": worker,
        "backend": backend,
        "outcome": outcome,
        "failure_type": kind.get("failure_type"),
        "failure_detail": kind.get("failure_detail"),
        "convergence": kind.get("convergence"),
        "verified": checks.get("passed"),
        "begun_at": _time(begun),
        "ended_at": _time(ended),
    }


def _runs(of: _Scope) -> Transaction[list[Json]]:
    """Runs that belong to no task of a project."""
    rows = yield Query(
        "SELECT r.id, a.task, r.job, r.state, a.worker, r.created_at, r.ended_at,"
        " (SELECT MIN(l.by_whom) FROM log l WHERE l.run = r.id AND l.seq = 1)"
        " FROM run r JOIN attempt a ON a.id = r.attempt WHERE r.created_at < ?"
        " AND (r.ended_at >= ? OR (r.ended_at IS NULL AND r.created_at >= ?))"
        " AND NOT EXISTS (SELECT 1 FROM task t WHERE t.key = a.task) ORDER BY r.created_at, r.id LIMIT ?",
        (of.until, of.since, of.since, REPORT_TASKS),
    )
    found = []
    for run, task, job, state, worker, begun, ended, by in rows:
        steps = yield Query("SELECT state, COUNT(*) FROM step WHERE run = ? GROUP BY state ORDER BY state", (run,))
        found.append(
            {
                "run": run,
                "task": task,
                "job": job,
                "state": state,
                "worker": worker,
                "by": by,
                "begun_at": _time(begun),
                "ended_at": _time(ended),
                "steps": {s: int(n) for s, n in steps},
            }
        )
    return found


def _events(of: _Scope) -> Transaction[dict[str, int]]:
    where, args = of.where("task", "at")
    rows = yield Query(f"SELECT event, COUNT(*) FROM task_event WHERE {where} GROUP BY event ORDER BY event", args)
    return {str(event): int(n) for event, n in rows}


def _attempts(of: _Scope) -> Transaction[dict[str, int]]:
    """Begun, and how those that ended in the span did; of tasks and of free-standing runs alike."""
    where, args = of.where("task", "created_at")
    begun = yield Query(f"SELECT COUNT(*) FROM attempt WHERE {where}", args)
    where, args = of.where("task", "ended_at")
    rows = yield Query(
        f"SELECT COALESCE(outcome, 'unknown'), COUNT(*) FROM attempt WHERE {where} GROUP BY outcome ORDER BY 1", args
    )
    return {"begun": int(begun[0][0]), **{str(outcome): int(n) for outcome, n in rows}}


def _verifications(of: _Scope) -> Transaction[dict[str, int]]:
    """Each one that was recorded, and of a task that was accepted, the one that it was accepted by."""
    where, args = of.where("task", "at")
    rows = yield Query(f"SELECT event, body FROM task_event WHERE {where} AND event IN ('verified', 'done')", args)
    counts = {"passed": 0, "failed": 0}
    for event, body in rows:
        passed = (json_values.decode(body) or {}).get("passed") if event == "verified" else None
        if passed is not None:
            counts["passed" if passed else "failed"] += 1
    return counts


def _steps(of: _Scope) -> Transaction[dict[str, int]]:
    where, args = of.where("a.task", "s.ended_at")
    rows = yield Query(
        "SELECT CASE WHEN s.state = 'settled' THEN 'settled' ELSE s.state END, COUNT(*) FROM step s"
        f" JOIN run r ON r.id = s.run JOIN attempt a ON a.id = r.attempt WHERE {where} GROUP BY 1 ORDER BY 1",
        args,
    )
    return {str(state): int(n) for state, n in rows}


def _people(of: _Scope) -> Transaction[list[Json]]:
    """Who did something to a task, or wrote into a run's log, and how much."""
    people: dict[str, Json] = {}

    def of_whom(name: str | None) -> Json:
        known = name or "nobody known"
        return people.setdefault(known, {"name": known, "done": 0, "failed": 0, "events": 0, "entries": 0})

    where, args = of.where("task", "at")
    rows = yield Query(f"SELECT by_whom, event, COUNT(*) FROM task_event WHERE {where} GROUP BY by_whom, event", args)
    for name, event, n in rows:
        about = of_whom(name)
        about["events"] += int(n)
        about["done"] += int(n) if event == "done" else 0
        about["failed"] += int(n) if event in ("fail", "give_up") else 0
    where, args = of.where("a.task", "l.at")
    rows = yield Query(
        "SELECT l.by_whom, COUNT(*) FROM log l JOIN run r ON r.id = l.run JOIN attempt a ON a.id = r.attempt"
        f" WHERE {where} GROUP BY l.by_whom",
        args,
    )
    for name, n in rows:
        of_whom(name)["entries"] += int(n)
    return sorted(people.values(), key=lambda p: (-p["done"], -p["events"], -p["entries"], p["name"]))
