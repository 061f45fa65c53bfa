"""How a task comes to be and changes, and how an attempt at it goes wrong. The other half of tasks.py."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import AFTER_MAX
from ...model.work import policy as policies
from ...model.work import task_contract
from ...model.work import task_states as words
from ...store import queries
from ...store.base import Query, Transaction
from ...wire import json_values
from ..runs import lease
from . import rows as task_rows
from .attempts import Turn, end_attempt, fence, known_backends, may_write, standing, turn
from .rows import Asked, Project, sessions

Json = dict[str, Any]


class New(NamedTuple):
    """A task to be added, checked."""

    id: str | None
    phase: str | None
    contract: Json
    after: list[str]


def init(name: str, phases: list[str] | None, root: str, asked: Asked) -> Transaction[Json]:
    """A project; asked for again with the same phases, the one that is there."""
    listed = json_values.encode(words.check_phases(phases), "the phases")
    now = yield from queries.now()
    made = yield Query(
        "INSERT INTO project (name, root, phases, active_phase, policy, tasks, given, by_whom, created_at)"
        " VALUES (?, ?, ?, ?, 0, 0, 0, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING name",
        (name, root, listed, json_values.decode(listed)[0], asked.by, now),
    )
    project = yield from task_rows.project(name)
    if not made and (project.root != root or (phases and project.phases != listed)):
        raise HoldfastError(
            "conflict",
            f"there is a project {name} already, in {project.root} with phases"
            f" {', '.join(json_values.decode(project.phases))}",
            "choose another name, or hold project edit",
        )
    return {
        "project_name": name,
        "root": project.root,
        "phases": json_values.decode(project.phases),
        "active_phase": project.active_phase,
        "created": bool(made),
    }


def edit_project(name: str, phases: list[str] | None, root: str | None, asked: Asked) -> Transaction[Json]:
    """Other phases, or another folder. A phase that has tasks stays."""
    project = yield from task_rows.locked(name)
    if phases is not None:
        wanted = words.check_phases(phases)
        for phase in set(json_values.decode(project.phases)) - set(wanted):
            if (yield Query("SELECT 1 FROM task WHERE project = ? AND phase = ? LIMIT 1", (name, phase))):
                raise HoldfastError("conflict", f"phase {phase} has tasks", "move them: hold task edit ID --phase P")
        project = project._replace(phases=json_values.encode(wanted, "the phases"))
        yield from _still_in_order(name, wanted)
    root = root or project.root
    yield Query("UPDATE project SET phases = ?, root = ? WHERE name = ?", (project.phases, root, name))
    active = yield from task_rows.advance(project)
    return {"project_name": name, "root": root, "phases": json_values.decode(project.phases), "active_phase": active}


def _still_in_order(name: str, phases: list[str]) -> Transaction[None]:
    """Refuse an order of phases in which a task waits for one of a later phase: neither could ever begin."""
    rows = yield Query(
        "SELECT t.id, t.phase, n.id, n.phase FROM dependency d JOIN task t ON t.key = d.task JOIN task n"
        " ON n.key = d.needs WHERE t.project = ? AND t.phase <> n.phase AND t.status NOT IN ('done', 'cancelled')"
        " AND n.status <> 'done' ORDER BY t.n",
        (name,),
    )
    for id, phase, need, later in rows:
        if phases.index(later) > phases.index(phase):
            raise HoldfastError(
                "conflict",
                f"task {id} of phase {phase} waits for {need} of phase {later}, which would be later",
                "move one of them first: hold task edit ID --phase P",
            )


# -- added and edited --------------------------------------------------------------------------------------------------


def add(name: str, new: New, asked: Asked) -> Transaction[Json]:
    project = yield from task_rows.locked(name)
    before = yield Query("SELECT task FROM task_event WHERE request = ?", (asked.request,))
    if before:
        return (yield from standing((yield from task_rows.task(before[0][0]))))
    id = new.id or (yield from _given(project))
    key = words.key(name, id)
    if (yield Query("SELECT 1 FROM task WHERE key = ?", (key,))):
        raise HoldfastError("conflict", f"there is a task {id} already", f"hold task show {id}, or choose another id")
    if new.id is None and id in new.after:  # meant is another one, which is not there
        raise not_found(f"no task {id!r} in project {name!r}", "add what comes before first")
    phase = yield from _phase(project, new.phase)
    yield from known_backends([new.contract["backend"]] if new.contract["backend"] else [])
    task_contract.expand(new.contract, (yield from task_rows.policy(name, project.policy)))
    yield Query(
        "INSERT INTO task (key, project, id, n, title, phase, status, contract, waiting, attempts, spent, retry_at,"
        " backend, by_whom, created_at, changed_at) VALUES (?, ?, ?, ?, ?, ?, 'pending', 1, 0, 0, 0, 0, ?, ?, ?, ?)",
        (
            key,
            name,
            id,
            project.tasks + 1,
            new.contract["title"],
            phase,
            new.contract["backend"],
            asked.by,
            project.now,
            project.now,
        ),
    )
    yield Query("UPDATE project SET tasks = tasks + 1 WHERE name = ?", (name,))
    yield from _version(key, 1, new.contract, asked, project.now)
    yield from _depend(project, key, phase, new.after)
    yield from task_rows.advance(project)
    yield from task_rows.note(key, "add", "pending", asked, project.now)
    return (yield from standing((yield from task_rows.task(key))))


def _given(project: Project) -> Transaction[str]:
    """1, 2, 3 …; ids that somebody chose are passed over."""
    n = project.given + 1
    while (yield Query("SELECT 1 FROM task WHERE key = ?", (words.key(project.name, str(n)),))):
        n += 1
    yield Query("UPDATE project SET given = ? WHERE name = ?", (n, project.name))
    return str(n)


def _phase(project: Project, wanted: str | None) -> Transaction[str]:
    """The phase that is named; else the active one, and where all are completed the last."""
    yield from ()
    phases = json_values.decode(project.phases)
    phase = wanted or project.active_phase or phases[-1]
    if phase not in phases:
        raise not_found(f"project {project.name} has no phase {phase[:64]!r}", f"it has {', '.join(phases)}")
    return str(phase)


def _version(key: str, version: int, body: Json, asked: Asked, now: int) -> Transaction[None]:
    yield Query(
        "INSERT INTO contract (task, version, at, by_whom, why, body) VALUES (?, ?, ?, ?, ?, ?)",
        (key, version, now, asked.by, asked.why, json_values.encode(body, "the contract")),
    )


def _depend(project: Project, key: str, phase: str, after: list[str]) -> Transaction[None]:
    """This task needs these, and no others. Refused where it could then never begin."""
    if len(after) > AFTER_MAX:
        raise invalid(f"a task waits for at most {AFTER_MAX:,} others", "gather them in a task of their own")
    phases = json_values.decode(project.phases)
    needs = dict.fromkeys(words.key(project.name, words.check_id(id)) for id in after)
    waiting = 0
    for need in needs:
        found = yield Query("SELECT status, phase FROM task WHERE key = ?", (need,))
        id = words.split(need)[1]
        if not found:
            raise not_found(f"no task {id!r} in project {project.name!r}", "add what comes before first")
        waiting += found[0][0] != "done"
        if phases.index(found[0][1]) > phases.index(phase):
            raise invalid(
                f"task {words.split(key)[1]} of phase {phase} would wait for {id} of the later phase {found[0][1]}",
                "neither could ever begin: put them into one phase, or turn them round",
            )
    yield from _no_cycle(key, list(needs))
    yield Query("DELETE FROM dependency WHERE task = ?", (key,))
    for need in needs:
        yield Query("INSERT INTO dependency (task, needs) VALUES (?, ?)", (key, need))
    yield Query("UPDATE task SET waiting = ? WHERE key = ?", (waiting, key))


def _no_cycle(key: str, needs: list[str]) -> Transaction[None]:
    edges: dict[str, list[str]] = {}
    ahead, seen = list(needs), set[str]()
    while ahead and key not in seen:
        here = ahead.pop()
        if here in seen:
            continue
        seen.add(here)
        rows = yield Query("SELECT needs FROM dependency WHERE task = ?", (here,))
        edges[here] = [str(need) for (need,) in rows]
        ahead += edges[here]
    cycle = words.find_cycle(key, needs, edges)
    if cycle is not None:
        path = " -> ".join(words.split(k)[1] for k in cycle)
        raise invalid(f"the dependencies go in a circle: {path}", "leave one of them out; nothing was changed")


def edit(
    key: str, given: Json, title: str | None, after: list[str] | None, phase: str | None, asked: Asked
) -> Transaction[Json]:
    """A new version of the contract, other dependencies, another phase: what is not given stays."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from standing(at.task))
    words.after("edit", at.task.status, at.task.id)
    before = yield from task_rows.contract(key, at.task.contract)
    body, listed = task_contract.check(given, title=title, before=before)
    phase = (yield from _phase(at.project, phase)) if phase else at.task.phase
    if body != before:
        yield from known_backends([body["backend"]] if body["backend"] else [])
        task_contract.expand(body, (yield from task_rows.policy(at.task.project, at.project.policy)))
        yield from _version(key, at.task.contract + 1, body, asked, at.now)
        yield from task_rows.write(
            key,
            at.now,
            contract=at.task.contract + 1,
            title=body["title"],
            backend=body["backend"] if not at.task.attempts else at.task.backend,
        )
    if phase != at.task.phase:
        yield from task_rows.write(key, at.now, phase=phase)
        yield from _dependents_allow(at, phase)
    if after is None and listed is not None:
        after = listed
    if after is None:
        after = [id for id, _ in (yield from task_rows.depends_on(key))]
    yield from _depend(at.project, key, phase, after)
    yield from task_rows.advance(at.project)
    yield from task_rows.note(key, "edit", at.task.status, asked, at.now, run=at.task.run)
    return (yield from standing((yield from task_rows.task(key)))) | {
        "contract_version": at.task.contract + (body != before)
    }


def _dependents_allow(at: Turn, phase: str) -> Transaction[None]:
    phases = json_values.decode(at.project.phases)
    rows = yield Query(
        "SELECT t.id, t.phase FROM dependency d JOIN task t ON t.key = d.task WHERE d.needs = ?", (at.task.key,)
    )
    for id, theirs in rows:
        if phases.index(theirs) < phases.index(phase):
            raise invalid(f"task {id} of phase {theirs} waits for {at.task.id}, which would be later", "move it first")


# -- what goes wrong, and what people decide ---------------------------------------------------------------------------


def fail(key: str, run: str | None, epoch: int | None, classification: object, asked: Asked) -> Transaction[Json]:
    """The attempt has failed: another one is due, unless they are used up or go in circles; then it is blocked."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from standing(at.task))
    if epoch is not None or run is not None:
        may_write(at, run, epoch, asked)
    words.after("fail", at.task.status, at.task.id)
    may_write(at, run, epoch, asked)
    made = policies.check_classification(
        classification, detail=asked.why or "", earlier=at.task.attempts - at.task.spent - 1
    )
    if at.open:
        yield from end_attempt(at, "failed", "null", asked, made)
    return (yield from failed(at, made, asked))


def failed(at: Turn, classification: Json, asked: Asked) -> Transaction[Json]:
    task = at.task
    kept = yield Query("SELECT policy_version FROM attempt WHERE id = ?", (task.attempt,))
    policy = yield from task_rows.policy(task.project, kept[0][0] or 0 if kept else 0)
    rows = yield Query(
        "SELECT classification FROM attempt WHERE task = ? AND n > ? AND outcome = 'failed' ORDER BY n",
        (task.key, task.spent),
    )
    over = policies.spent(policy, task.attempts - task.spent, [json_values.decode(text) for (text,) in rows])
    event = "fail" if over is None else "give_up"
    status = words.after(event, task.status, task.id)
    report = None
    if over is not None:
        report = {"why": over, "question": None, "classification": classification, "by": asked.by}
    yield from task_rows.write(
        task.key,
        at.now,
        status=status,
        taken_by=None,
        retry_at=at.now + int(policy["retry"]["delay_s"] * 1e6),
        report=None if report is None else json_values.encode(report, "the report"),
    )
    body = {"classification": classification} | ({"why": over} if over else {})
    yield from task_rows.note(task.key, event, status, asked, at.now, run=task.run, body=body)
    return (yield from standing((yield from task_rows.task(task.key)))) | {"why": over}


def block(key: str, epoch: int | None, classification: object, question: str | None, asked: Asked) -> Transaction[Json]:
    """It waits for a person. Its attempt stays open, so that what was done in it counts when it goes on."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from standing(at.task))
    if epoch is not None:
        may_write(at, None, epoch, asked)
    status = words.after("block", at.task.status, at.task.id)
    made = policies.check_classification(
        classification, detail=asked.why or question or "", earlier=max(0, at.task.attempts - at.task.spent - 1)
    )
    if not made["suggested_focus"]:
        made["suggested_focus"] = question or asked.why or ""
    if at.open and at.held is not None:
        yield from fence(at.held)
        yield Query(
            "UPDATE attempt SET classification = ? WHERE id = ?",
            (json_values.encode(made, "the classification"), at.held.attempt),
        )
    if at.task.run is not None and question:
        yield from _say(at, "question", question, asked)
    report = {"why": asked.why, "question": question, "classification": made, "by": asked.by}
    yield from task_rows.write(
        key, at.now, status=status, taken_by=None, report=json_values.encode(report, "the report")
    )
    yield from task_rows.note(key, "block", status, asked, at.now, run=at.task.run, body=report)
    return (yield from standing((yield from task_rows.task(key))))


def _say(at: Turn, kind: str, text: str, asked: Asked) -> Transaction[None]:
    """Into the run's log, where whoever goes on reads it."""
    assert at.task.run is not None
    yield from queries.append(
        at.task.run, kind, json_values.encode(text, f"the {kind}"), at=at.now, epoch=0, by=asked.by
    )


def unblock(key: str, asked: Asked) -> Transaction[Json]:
    """Go on: with the attempt that is open, or with a fresh number of attempts."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from standing(at.task))
    status = words.after("unblock", at.task.status, at.task.id)
    if at.task.run is not None and asked.why:
        yield from _say(at, "answer", asked.why, asked)
    spent = max(0, at.task.attempts - 1) if at.open else at.task.attempts
    yield from task_rows.write(key, at.now, status=status, spent=spent, retry_at=0, report=None, taken_by=None)
    yield from task_rows.note(key, "unblock", status, asked, at.now, run=at.task.run)
    return (yield from standing((yield from task_rows.task(key))))


def pause(key: str, asked: Asked) -> Transaction[Json]:
    """Nobody goes on with it until it is unblocked; a worker that was at it is fenced, its sessions go on."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from standing(at.task))
    status = words.after("pause", at.task.status, at.task.id)
    if at.open and at.held is not None:
        yield from fence(at.held)
    yield from task_rows.write(key, at.now, status=status, taken_by=None)
    yield from task_rows.note(key, "pause", status, asked, at.now, run=at.task.run)
    return (yield from standing((yield from task_rows.task(key)))) | {"sessions": (yield from sessions(at.task))}


def retry(key: str, asked: Asked) -> Transaction[Json]:
    """From the beginning: a new attempt with a fresh count, whatever became of the last."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from standing(at.task))
    status = words.after("retry", at.task.status, at.task.id)
    if at.open and at.held is not None:
        yield from fence(at.held)
        yield from end_attempt(at, "cancelled", "null", asked)
    yield from task_rows.write(
        key, at.now, status=status, spent=at.task.attempts, retry_at=0, report=None, taken_by=None, ended_at=None
    )
    yield from task_rows.advance(at.project)
    yield from task_rows.note(key, "retry", status, asked, at.now, run=at.task.run)
    return (yield from standing((yield from task_rows.task(key))))


def cancel(key: str, asked: Asked) -> Transaction[Json]:
    """No longer wanted. Its runs have ended, their open steps are in doubt for good, its worker is fenced."""
    at = yield from turn(key, asked)
    used = yield from sessions(at.task)
    if at.again or at.task.status == "cancelled":
        return (yield from standing(at.task)) | {"sessions": used}
    status = words.after("cancel", at.task.status, at.task.id)
    if at.open and at.held is not None:
        yield from fence(at.held)
        yield from lease.doubt(str(at.task.run), at.held, for_good=True)
        yield from end_attempt(at, "cancelled", "null", asked)
    yield from task_rows.write(key, at.now, status=status, taken_by=None, report=None, ended_at=at.now)
    yield from task_rows.advance(at.project)
    yield from task_rows.note(key, "cancel", status, asked, at.now, run=at.task.run)
    return (yield from standing((yield from task_rows.task(key)))) | {"sessions": used}
