"""What the store knows for a brief: of a task, a run, a project, or of all that is under way. Each query is bounded."""

from __future__ import annotations

from typing import Any

from ...model.limits import BRIEF_LISTED
from ...model.times import rfc3339
from ...model.work import task_states as words
from ...model.work.run_state import text_of
from ...store import queries
from ...store.base import Query, Step, Transaction
from ...wire import json_values
from ..claims import rows as claim_rows
from ..runs import rows as runs
from ..steps import report
from ..tasks import rows as task_rows
from ..tasks import views

Json = dict[str, Any]
_NOTED = ("decision", "learned", "rejected", "question", "answer")
_UNFINISHED = "s.state IN ('open', 'in_doubt')"  # in these words the index of unfinished steps is used


def _time(micros: int | None) -> str | None:
    return rfc3339(micros / 1e6) if micros else None


def blank(of: str) -> Json:
    """Every fact that a brief may need, none of them known."""
    lists = (
        "constraints",
        "acceptance",
        "in_doubt",
        "open",
        "failed",
        "claims",
        "events",
        "plan",
        "attempts",
        "decisions",
        "paths_not_taken",
        "questions",
        "sessions",
        "asks",
        "verification",
        "active",
        "blocked",
        "ready",
    )
    return {
        "of": of,
        "project": None,
        "task": None,
        "run": None,
        "goal": None,
        "resume_point": None,
        "counts": {},
        "totals": {},
        **{name: [] for name in lists},
    }


def of_task(key: str) -> Transaction[Json]:
    shown = yield from views.show(key)
    task = yield from task_rows.task(key)
    needs = yield Query(
        "SELECT t.id, t.key, t.status FROM dependency d JOIN task t ON t.key = d.needs"
        " WHERE d.task = ? AND t.status <> 'done' ORDER BY t.n LIMIT ?",
        (key, BRIEF_LISTED),
    )
    facts = blank("task")
    project = yield from task_rows.project(task.project)
    contract = shown["contract"]
    report = {k: shown[k] for k in ("why", "question") if shown.get(k)}
    facts |= {
        "observed_at": shown["observed_at"],
        "project": {"name": task.project, "root": shown["root"]},
        "task": {
            "key": key,
            "id": task.id,
            "title": task.title,
            "status": shown["status"],
            "phase": task.phase,
            "active_phase": project.active_phase,
            "needs": [dict(zip(("id", "key", "status"), row, strict=True)) for row in needs],
            "report": report,
        },
        "goal": contract.get("goal"),
        "constraints": list(contract.get("constraints") or []),
        "acceptance": list(contract.get("acceptance") or []),
        "attempts": [_attempt(a) for a in shown["attempts"][-BRIEF_LISTED:]][::-1],
        "events": [{k: e[k] for k in ("at", "event", "by", "why") if e[k]} for e in shown["events"][::-1][:5]],
    }
    facts["totals"]["attempts"] = shown["attempt_count"]
    record = shown["attempts"][-1]["verification"] if shown["attempts"] else None
    facts["verification"] = (record or {}).get("results") or []
    if task.run is not None:
        yield from _of_run(task.run, facts)
    yield from _steps(facts, "a.task = ?", key)
    facts["claims"] = yield from claim_rows.listing(key, None)
    return facts


def _attempt(attempt: Json) -> Json:
    told = {k: attempt[k] for k in ("n", "backend", "outcome", "worker", "classification", "ended_at")}
    return {
        **told,
        "created_at": attempt["begun_at"],
        "run": attempt["run_id"],
        "verification": (attempt["verification"] or {}).get("results") or [],
    }


def of_run(run: str) -> Transaction[Json]:
    """A run; of a task's current one all that is known of the task, of an earlier one what the task wants."""
    kept = yield from queries.run(run)
    known = [] if kept.task is None else (yield Query("SELECT run, contract FROM task WHERE key = ?", (kept.task,)))
    if kept.task is not None and known and known[0][0] == run:
        return (yield from of_task(kept.task)) | {"of": "run"}
    facts = blank("run")
    if kept.task is not None and known:
        contract = yield from task_rows.contract(kept.task, known[0][1])
        facts |= {
            "goal": contract.get("goal"),
            "constraints": list(contract.get("constraints") or []),
            "acceptance": list(contract.get("acceptance") or []),
        }
    now = yield from queries.now()
    facts["observed_at"] = _time(now)
    yield from _of_run(run, facts)
    yield from _steps(facts, "s.run = ?", run)
    facts["claims"] = yield from claim_rows.listing(None, run)
    facts["events"] = yield from _run_events(run)
    return facts


def _of_run(run: str, facts: Json) -> Transaction[None]:
    """The run's own state, what was noted in it, and the sessions that it used."""
    facts["run"] = yield from runs.status(run)
    noted = yield Query(
        "SELECT seq, kind, at, by_whom, body FROM log WHERE run = ? AND kind IN (?, ?, ?, ?, ?)"
        " ORDER BY seq DESC LIMIT ?",
        (run, *_NOTED, 4 * BRIEF_LISTED),
    )
    entries = [
        {"seq": seq, "kind": kind, "at": _time(at), "by": by, "body": json_values.decode(body)}
        for seq, kind, at, by, body in noted
    ]
    kept = [e for e in entries if e["kind"] in ("decision", "learned")]
    facts["decisions"] = [_noted(e) for e in kept[:BRIEF_LISTED]]  # the latest first
    facts["totals"]["decisions"] = len(kept)
    facts["paths_not_taken"] = [_noted(e) for e in entries if e["kind"] == "rejected"][:BRIEF_LISTED]
    facts["questions"] = _questions(entries[::-1])[-BRIEF_LISTED:][::-1]
    facts["sessions"] = facts["run"]["sessions"][::-1]


def _noted(entry: Json) -> Json:
    why = entry["body"].get("why") if isinstance(entry["body"], dict) else None
    told = {"kind": entry["kind"], "text": text_of(entry["body"]), "why": why, "at": entry["at"], "by": entry["by"]}
    return {k: v for k, v in told.items() if v}


def _questions(entries: list[Json]) -> list[Json]:
    """Each with the answer that names it, or that came next."""
    asked: list[Json] = []
    for entry in entries:
        body = entry["body"]
        if entry["kind"] == "question":
            asked.append({"seq": entry["seq"], "text": text_of(body), "answer": None})
        elif entry["kind"] == "answer":
            to = body.get("to") if isinstance(body, dict) else None
            for question in asked:
                if question["answer"] is None and to in (None, question["seq"]):
                    question["answer"] = text_of(body)
                    break
    return asked


def _run_events(run: str) -> Transaction[list[Json]]:
    rows = yield Query(
        "SELECT at, by_whom, body FROM log WHERE run = ? AND kind = 'run' ORDER BY seq DESC LIMIT 5", (run,)
    )
    found = []
    for at, by, body in rows:
        about = json_values.decode(body)
        event = {"at": _time(at), "event": about.get("event"), "by": by, "why": about.get("why")}
        found.append({k: v for k, v in event.items() if v})
    return found


def _steps(facts: Json, where: str, *args: str) -> Transaction[None]:
    """What is open and what is in doubt, oldest first, with their number; and what failed.

    Also of attempts that have ended: nobody can settle that any more, and whoever does it again must know.
    """
    names = ", ".join(f"s.{f}" for f in Step._fields)
    of = f" FROM step s JOIN run r ON r.id = s.run JOIN attempt a ON a.id = r.attempt WHERE {where} AND {_UNFINISHED}"
    now = yield from queries.now()
    rows = yield Query(
        f"SELECT {names}, r.state{of}"
        " ORDER BY CASE WHEN r.state = 'active' THEN 0 ELSE 1 END, CASE WHEN s.state = 'in_doubt' THEN 0 ELSE 1 END,"
        " s.begun_at, s.key LIMIT ?",
        (*args, 2 * BRIEF_LISTED),
    )
    told = [{**report.report(Step(*row[:-1]), now), "run_state": row[-1]} for row in rows]
    totals: dict[str, int] = {}
    if len(rows) == 2 * BRIEF_LISTED:
        counts = yield Query(f"SELECT s.state, COUNT(*){of} GROUP BY s.state", args)
        totals = {str(state): int(n) for state, n in counts}
    for state in ("in_doubt", "open"):
        found = [step for step in told if step["state"] == state]
        facts[state] = found[:BRIEF_LISTED]
        facts["totals"][state] = totals.get(state, len(found))
    run = facts["run"]
    if run is not None and run["steps"]["failed"]:
        rows = yield Query(
            f"SELECT {names} FROM step s WHERE s.run = ? AND s.state = 'failed' ORDER BY s.begun_at, s.key LIMIT 5",
            (run["run"],),
        )
        facts["failed"] = [report.report(Step(*row), now) for row in rows]


def plan_states(run: str, keys: list[str]) -> Transaction[dict[str, str]]:
    """How the steps of a plan stand."""
    marks = ", ".join("?" * len(keys))
    rows = yield Query(f"SELECT key, state, outcome FROM step WHERE run = ? AND key IN ({marks})", (run, *keys))
    return {key: runs.standing(state, outcome) for key, state, outcome in rows}


# -- more than one task ------------------------------------------------------------------------------------------------


def of_project(name: str) -> Transaction[Json]:
    """What is under way, blocked and ready; `focus` is the task whose turn it is."""
    project = yield from task_rows.project(name)
    facts = blank("project")
    about = {"name": name, "root": project.root, "phase": project.active_phase}
    facts |= {"observed_at": _time(project.now), "project": about}
    rows = yield Query("SELECT status, COUNT(*) FROM task WHERE project = ? GROUP BY status", (name,))
    counts = {str(status): int(n) for status, n in rows}
    facts["counts"] = counts
    prefix = name + "/"
    yield from _steps(facts, "r.state = 'active' AND substr(a.task, 1, LENGTH(?)) = ?", prefix, prefix)
    doubts = {step["run"] for step in facts["in_doubt"]}
    for listed, statuses in (("active", ["active"]), ("blocked", ["blocked", "failed", "paused"])):
        for status in statuses:
            told = yield from views.listing(name, status, None, BRIEF_LISTED, None)
            facts[listed] += [_listed(t, doubts) for t in told]
        facts["totals"][listed] = sum(counts.get(status, 0) for status in statuses)
    ready = yield from views.listing(name, "ready", None, BRIEF_LISTED, None)
    facts["ready"] = [_listed(t, doubts) for t in ready]
    total = yield Query(
        "SELECT COUNT(*) FROM task WHERE project = ? AND phase = ? AND waiting = 0 AND status IN ('pending', 'failed')"
        " AND retry_at <= ?",
        (name, project.active_phase or "", project.now),
    )
    facts["totals"]["ready"] = int(total[0][0])
    rows = yield Query(
        "SELECT id, report FROM task WHERE project = ? AND status = 'blocked' ORDER BY n LIMIT ?", (name, BRIEF_LISTED)
    )
    reports = {id: json_values.decode(report) or {} for id, report in rows}
    for task in facts["blocked"]:
        report = reports.get(task["id"], {})
        task["why"] = report.get("question") or report.get("why")
    yield from _never_ready(facts, name)
    facts["focus"] = _focus(facts, name)
    return facts


def _never_ready(facts: Json, name: str) -> Transaction[None]:
    """What waits for a task that was cancelled is as stuck as what is blocked: a person says what becomes of it."""
    waits: dict[str, list[str]] = {}
    for id, need in (yield from task_rows.never_ready(name, 4 * BRIEF_LISTED)):
        waits.setdefault(id, []).append(need)
    known = {task["id"] for listed in ("active", "blocked") for task in facts[listed]}
    for id in [id for id in waits if id not in known]:
        facts["totals"]["blocked"] += 1
        if len(facts["blocked"]) < BRIEF_LISTED:
            task = yield from task_rows.task(words.key(name, id))
            why = f"waits for cancelled {', '.join(words.key(name, need) for need in waits[id])}"
            facts["blocked"].append(
                {
                    "id": id,
                    "title": task.title,
                    "status": task.status,
                    "run": task.run,
                    "worker": None,
                    "leased": False,
                    "lease_until": None,
                    "in_doubt": 0,
                    "why": why,
                }
            )


def _listed(task: Json, doubts: set[str]) -> Json:
    leased = task["lease_until"] is not None
    return {
        "id": task["task_id"],
        "title": task["title"],
        "status": task["status"],
        "run": task["run_id"],
        "worker": task["worker"],
        "leased": leased,
        "lease_until": task["lease_until"],
        "in_doubt": 1 if task["run_id"] in doubts else 0,
    }


def _focus(facts: Json, name: str) -> str | None:
    """The task whose turn it is: one in doubt, one that nobody is at, the next that is ready, one that is blocked."""
    active = facts["active"]
    order = [t for t in active + facts["blocked"] if t["in_doubt"]]
    order += [t for t in active if not t["leased"]]
    order += facts["ready"] + facts["blocked"] + active
    return f"{name}/{order[0]['id']}" if order else None


def of_runs() -> Transaction[Json]:
    """All runs under way, newest first, in a store without a project; `focus_run` is the one whose turn it is."""
    facts = blank("runs")
    now = yield from queries.now()
    facts["observed_at"] = _time(now)
    rows = yield Query(
        "SELECT r.id, a.task, r.job, a.worker, a.lease_until, r.created_at"
        " FROM run r JOIN attempt a ON a.id = r.attempt WHERE r.state = 'active'"
        " ORDER BY r.created_at DESC, r.id LIMIT ?",
        (BRIEF_LISTED,),
    )
    yield from _steps(facts, "r.state = ?", "active")
    doubts = {step["run"] for step in facts["in_doubt"]}
    for run, task, job, worker, until, begun in rows:
        leased = bool(until) and until > now
        facts["active"].append(
            {
                "run": run,
                "id": None,
                "title": task or job or f"begun {_time(begun)}",
                "status": "active",
                "worker": worker,
                "leased": leased,
                "lease_until": _time(until) if leased else None,
                "in_doubt": 1 if run in doubts else 0,
            }
        )
    total = yield Query("SELECT COUNT(*) FROM run WHERE state = 'active'")
    facts["totals"]["active"] = int(total[0][0])
    facts["counts"] = {"active runs": int(total[0][0])}
    turn = [t for t in facts["active"] if t["in_doubt"]] + [t for t in facts["active"] if not t["leased"]]
    facts["focus_run"] = (turn or facts["active"] or [{"run": None}])[0]["run"]
    return facts
