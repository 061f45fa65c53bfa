"""What is told of projects and tasks: the project's state, lists, one task whole, the blocked report."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...model.errors import not_found
from ...model.limits import ATTEMPTS_SHOWN_MAX, TASKS_LISTED_MAX
from ...model.times import rfc3339_us
from ...model.work import policy as policies
from ...model.work import task_contract
from ...model.work import task_states as words
from ...store.base import Query, Transaction
from ...wire import json_values
from . import overlap
from . import rows as task_rows
from .rows import Project, Task

Json = dict[str, Any]
_EVENTS_SHOWN = 50  # of a task's history, the latest; all of it is in the report of a time span
_CLASSIFIED = ("failure_type", "failure_detail", "suggested_focus", "convergence")


# As words.shown and words.ready say it, for lists of thousands. Arguments: the active phase; now, the active phase.
_SHOWN = "CASE WHEN status = 'pending' AND waiting = 0 AND phase = ? THEN 'ready' ELSE status END"
_READY = (
    "CASE WHEN (status = 'pending' OR (status = 'failed' AND retry_at <= ?)) AND waiting = 0 AND phase = ?"
    " THEN 1 ELSE 0 END"
)


def _time(micros: int | None) -> str | None:
    return rfc3339_us(micros) if micros else None


# -- projects ----------------------------------------------------------------------------------------------------------


def state(name: str) -> Transaction[Json]:
    """Where a project stands."""
    project = yield from task_rows.project(name)
    active, now = project.active_phase, project.now
    rows = yield Query(
        f"SELECT id, {_SHOWN}, backend, title, phase FROM task WHERE project = ? ORDER BY n", (active or "", name)
    )
    phases = json_values.decode(project.phases)
    completed, remaining = words.sort_phases(phases, active)
    counts = {**dict.fromkeys(words.SHOWN, 0), **Counter([row[1] for row in rows])}
    listed = [
        {"task_id": id, "status": status, "backend": backend, "title": title, "phase": phase}
        for id, status, backend, title, phase in rows
    ]
    return {
        "project_name": name,
        "active_phase": active,
        "tasks": listed,
        "completed_phases": completed,
        "remaining_phases": remaining,
        "phases": phases,
        "root": project.root,
        "counts": counts,
        "policy_version": project.policy,
        "created_at": _time(project.created_at),
        "observed_at": _time(now),
    }


def projects() -> Transaction[list[Json]]:
    rows = yield Query("SELECT name, root, phases, active_phase, tasks, created_at FROM project")
    left = yield Query("SELECT project, COUNT(*) FROM task WHERE status NOT IN ('done', 'cancelled') GROUP BY project")
    unfinished = {str(name): int(n) for name, n in left}
    return [
        {
            "project_name": name,
            "root": root,
            "phases": json_values.decode(phases),
            "active_phase": active,
            "tasks": count,
            "unfinished": unfinished.get(name, 0),
            "created_at": _time(at),
        }
        for name, root, phases, active, count, at in sorted(rows)  # here: databases disagree about the order of text
    ]


# -- tasks -------------------------------------------------------------------------------------------------------------


def listing(name: str, status: str | None, phase: str | None, limit: int, after: str | None) -> Transaction[list[Json]]:
    """Tasks in the order in which they were added, from after one of them on."""
    project = yield from task_rows.project(name)
    start = 0
    if after is not None:
        found = yield Query("SELECT n FROM task WHERE key = ?", (words.key(name, after),))
        if not found:
            raise not_found(f"no task {after!r} in project {name!r}", "hold task ls")
        start = found[0][0]
    where, args = "t.project = ? AND t.n > ?", [name, start]
    if status == "ready":
        where += " AND t.phase = ? AND t.waiting = 0 AND t.status IN ('pending', 'failed') AND t.retry_at <= ?"
        args += [project.active_phase or "", project.now]
    elif status is not None:
        where += " AND t.status = ?"
        args.append(status)
    if phase is not None:
        where += " AND t.phase = ?"
        args.append(phase)
    rows = yield Query(
        f"SELECT t.id, t.title, {_SHOWN}, t.phase, {_READY}, t.backend, t.waiting, t.attempts, t.run, t.taken_by,"
        " t.changed_at, a.worker, a.lease_until FROM task t LEFT JOIN attempt a"
        f" ON a.id = t.attempt AND t.status = 'active' WHERE {where} ORDER BY t.n LIMIT ?",
        (project.active_phase or "", project.now, project.active_phase or "", *args, limit),
    )
    never: dict[str, list[str]] = {}
    if any(row[6] for row in rows):
        for id, need in (yield from task_rows.never_ready(name, TASKS_LISTED_MAX)):
            never.setdefault(id, []).append(need)
    return [_line(project, *row) | {"waits_for_cancelled": never.get(row[0], [])} for row in rows]


def _line(
    project: Project,
    id: str,
    title: str,
    status: str,
    phase: str,
    ready: int,
    backend: str | None,
    waiting: int,
    attempts: int,
    run: str | None,
    taken_by: str | None,
    changed_at: int,
    worker: str | None,
    until: int | None,
) -> Json:
    leased = until is not None and until > project.now
    return {
        "task_id": id,
        "project": project.name,
        "title": title,
        "status": status,
        "phase": phase,
        "ready": bool(ready),
        "backend": backend,
        "waiting": waiting,
        "attempt_count": attempts,
        "run_id": run,
        "worker": worker if leased else taken_by,
        "lease_until": _time(until) if leased else None,
        "changed_at": _time(changed_at),
    }


def show(key: str) -> Transaction[Json]:
    """One task whole. Of a blocked one this is the blocked report: all that somebody else needs to go on."""
    task = yield from task_rows.task(key)
    project = yield from task_rows.project(task.project)
    contract = yield from task_rows.contract(key, task.contract)
    needs = yield from task_rows.depends_on(key)
    attempts = yield from _attempts(task)
    held = yield Query("SELECT worker, lease_until, epoch FROM attempt WHERE id = ?", (task.attempt,))
    ready = task_rows.ready(task, project)
    worker, until = held[0][:2] if held and task.status == "active" else (None, None)
    line = _line(
        project,
        task.id,
        task.title,
        words.shown(task.status, ready),
        task.phase,
        ready,
        task.backend,
        task.waiting,
        task.attempts,
        task.run,
        task.taken_by,
        task.changed_at,
        worker,
        until,
    )
    policy_version = attempts[-1]["policy_version"] if attempts else project.policy
    policy = yield from task_rows.policy(task.project, policy_version or 0)
    versions = yield Query("SELECT version, at, by_whom, why FROM contract WHERE task = ? ORDER BY version", (key,))
    needed_by = yield Query(
        "SELECT t.id FROM dependency d JOIN task t ON t.key = d.task WHERE d.needs = ? ORDER BY t.n LIMIT 100", (key,)
    )
    used = yield from task_rows.sessions(task)
    doubts = yield Query(
        "SELECT s.key, s.run FROM step s JOIN run r ON r.id = s.run JOIN attempt a ON a.id = r.attempt"
        " WHERE a.task = ? AND r.state = 'active' AND s.state IN ('open', 'in_doubt') ORDER BY s.begun_at",
        (key,),
    )
    report = json_values.decode(task.report) or {}
    return {
        **line,
        "depends_on": [id for id, _ in needs],
        "waits_for": [id for id, s in needs if s != "done"],
        "waits_for_cancelled": [id for id, s in needs if s == "cancelled"],
        "held_back": (yield from overlap.in_the_way(task, (yield from overlap.under_way(project)))) if ready else None,
        "needed_by": [id for (id,) in needed_by],
        "contract": contract,
        "contract_version": task.contract,
        "contract_versions": [{"version": v, "at": _time(at), "by": by, "why": why} for v, at, by, why in versions],
        "written_by": (yield from task_rows.authors(key, contract)),
        "policy_version": policy_version,
        "backends": policies.backends(contract, policy, task.phase, task.id),
        "checks": task_contract.expand(contract, policy),
        "root": project.root,
        "epoch": held[0][2] if held else 0,
        "classification": _classification(task, report, attempts),
        "why": report.get("why"),
        "question": report.get("question"),
        "blocked_by": report.get("by"),
        "attempts": attempts,
        "attempt_count": task.attempts,
        "run_id": task.run,
        "sessions": used,
        "in_doubt": [{"key": k, "run_id": r} for k, r in doubts],
        "events": (yield from _events(key)),
        "created_at": _time(task.created_at),
        "ended_at": _time(task.ended_at),
        "observed_at": _time(project.now),
    }


def _classification(task: Task, report: Json, attempts: list[Json]) -> Json | None:
    """Of the block; else of the latest attempt that has one. A blocked task always has all of it."""
    found = report.get("classification") or next(
        (a["classification"] for a in reversed(attempts) if a["classification"]), None
    )
    if found is None and task.status == "blocked":
        found = policies.check_classification(None, detail=report.get("why") or "")
    return found


def _attempts(task: Task) -> Transaction[list[Json]]:
    rows = yield Query(
        "SELECT a.id, a.n, a.worker, a.backend, a.outcome, a.classification, a.verification, a.changes,"
        " a.policy_version, a.contract_version, a.created_at, a.ended_at, (SELECT MIN(r.id) FROM run r"
        " WHERE r.attempt = a.id AND r.forked_from IS NULL) FROM attempt a WHERE a.task = ? ORDER BY a.n DESC LIMIT ?",
        (task.key, ATTEMPTS_SHOWN_MAX),
    )
    return [
        {
            "attempt": id,
            "n": n,
            "run_id": run,
            "worker": worker,
            "backend": backend,
            "outcome": outcome,
            "classification": json_values.decode(classification),
            "verification": json_values.decode(verification),
            "changes": json_values.decode(changes),
            "policy_version": policy,
            "contract_version": contract,
            "begun_at": _time(begun),
            "ended_at": _time(ended),
        }
        for (
            id,
            n,
            worker,
            backend,
            outcome,
            classification,
            verification,
            changes,
            policy,
            contract,
            begun,
            ended,
            run,
        ) in reversed(rows)
    ]


def _events(key: str) -> Transaction[list[Json]]:
    rows = yield Query(
        "SELECT seq, at, by_whom, event, status, run, why, body FROM task_event WHERE task = ?"
        " ORDER BY seq DESC LIMIT ?",
        (key, _EVENTS_SHOWN),
    )
    return [
        {
            "seq": seq,
            "at": _time(at),
            "by": by,
            "event": event,
            "status": status,
            "run_id": run,
            "why": why,
            "detail": json_values.decode(body),
        }
        for seq, at, by, event, status, run, why, body in reversed(rows)
    ]


def contract(key: str, version: int | None) -> Transaction[Json]:
    task = yield from task_rows.task(key)
    wanted = task.contract if version is None else version
    return {"task_id": task.id, "version": wanted, "contract": (yield from task_rows.contract(key, wanted))}
