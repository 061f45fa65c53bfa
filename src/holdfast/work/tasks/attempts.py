"""What happens to a task: added, started, verified, done; failed, blocked, paused, cancelled. One transaction each.

Every one begins with the project's lock, so that two never decide about the same project at once, and ends with an
event that carries the request: asked again, it finds itself and changes nothing. Locks are taken in one order: project,
then attempt.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import HoldfastError, not_found
from ...model.times import rfc3339
from ...model.work import policy as policies
from ...model.work import task_contract
from ...model.work import task_states as words
from ...model.work.effects import Fenced
from ...store import queries
from ...store.base import Held, Query, Transaction
from ...wire import json_values
from ..runs import lease
from ..runs import rows as runs
from . import overlap
from . import rows as task_rows
from .rows import Asked, Project, Task
from .verification import accept, judged

Json = dict[str, Any]


KEPT = """body NOT LIKE '{"removed":%'"""  # of a backend: it was not removed


class Turn(NamedTuple):
    """A task under its project's lock, with its latest attempt. `again`: this request was applied before."""

    project: Project
    task: Task
    held: Held | None
    again: bool

    @property
    def now(self) -> int:
        return self.project.now

    @property
    def open(self) -> bool:
        return self.held is not None and self.held.ended_at is None


def turn(key: str, asked: Asked) -> Transaction[Turn]:
    project = yield from task_rows.locked(words.split(key)[0] or "")
    task = yield from task_rows.task(key)
    held = None if task.run is None else (yield from queries.held(task.run))
    return Turn(project, task, held, (yield from task_rows.happened(asked.request)))


# -- starting ----------------------------------------------------------------------------------------------------------


def start(key: str, wanted: runs.Wanted, backend: str | None, take: bool, asked: Asked) -> Transaction[Json]:
    """Begin the next attempt, or go on with the one that is open; leased where a worker is named."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from _given_before(at.task, asked))
    if not wanted.again and at.held is not None and not at.open and (yield from _outcome(at)) == "done":
        return (yield from runs.begin(wanted._replace(task=key)))  # `begin_run` of what is done: the run that did it
    status = words.after("start", at.task.status, at.task.id)
    if at.task.status == "active":
        if take and at.held is not None and lease.alive(at.held) and lease.by_hand(at.held.worker):
            yield from fence(at.held)  # what its holder left open is in doubt as soon as somebody writes
            at = yield from turn(key, asked)
        not_taken(at, at.held is not None and lease.same(at.held, wanted.worker, wanted.process), take, asked)
    elif not at.open:
        yield from task_rows.in_the_way(at.task, at.project)
    return (yield from begin(at, wanted, backend, status, asked))


def _outcome(at: Turn) -> Transaction[str | None]:
    rows = yield Query("SELECT outcome FROM attempt WHERE id = ?", (at.task.attempt,))
    return rows[0][0] if rows else None


def _given_before(task: Task, asked: Asked) -> Transaction[Json]:
    """The answer was lost, and is given again; unless the lease that it gave has gone to somebody else since."""
    rows = yield Query("SELECT request, worker FROM attempt WHERE id = ?", (task.attempt,))
    if not rows or rows[0][0] != asked.request:
        raise HoldfastError("busy", f"task {task.id} has gone to {rows[0][1] if rows else 'nobody'} since", "ask anew")
    return (yield from started(task, resumed=True))


def begin(at: Turn, wanted: runs.Wanted, backend: str | None, status: str, asked: Asked) -> Transaction[Json]:
    task = at.task
    if backend is not None:
        yield from known_backends([backend])
    if at.held is not None and at.open and wanted.worker is None and at.held.worker and not lease.alive(at.held):
        yield from fence(at.held)  # a dead worker's lease: whoever works by hand now is not to be disturbed by it
    made = yield from runs.begin(wanted._replace(task=task.key, run=None, again=True))
    if made["n"] > task.attempts:
        yield Query(
            "UPDATE attempt SET policy_version = ?, contract_version = ? WHERE id = ?",
            (at.project.policy, task.contract, made["attempt"]),
        )
    yield Query("UPDATE attempt SET backend = COALESCE(?, backend) WHERE id = ?", (backend, made["attempt"]))
    yield from task_rows.write(
        task.key,
        at.now,
        status=status,
        attempt=made["attempt"],
        run=made["run"],
        attempts=made["n"],
        backend=backend or task.backend,
        taken_by=None if wanted.worker else asked.by,
        report=None,
        retry_at=0,
    )
    body = {"n": made["n"], "worker": wanted.worker, "backend": backend, "epoch": made["epoch"]}
    yield from task_rows.note(task.key, "start", status, asked, at.now, run=made["run"], body=body)
    return (yield from started((yield from task_rows.task(task.key)), resumed=made["resumed"]))


def started(task: Task, *, resumed: bool) -> Transaction[Json]:
    """What a worker needs to know to begin."""
    if task.run is None:
        raise HoldfastError("conflict", f"task {task.id} was never started", f"hold task start {task.id}")
    made = yield from runs.answer(task.run, resumed=resumed)
    project = yield from task_rows.project(task.project)
    versions = (yield Query("SELECT policy_version, backend FROM attempt WHERE id = ?", (task.attempt,)))[0]
    contract = yield from task_rows.contract(task.key, task.contract)
    policy = yield from task_rows.policy(task.project, versions[0] or 0)
    return {
        **made,
        "run_id": made["run"],
        "task_id": task.id,
        "project": task.project,
        "root": project.root,
        "title": task.title,
        "phase": task.phase,
        "status": task.status,
        "contract": contract,
        "contract_version": task.contract,
        "policy": policy,
        "policy_version": versions[0] or 0,
        "checks": task_contract.expand(contract, policy),
        "backend": versions[1],
        "written_by": (yield from task_rows.authors(task.key, contract)),
        "backends": policies.backends(contract, policy, task.phase, task.id),
        "attempts_left": max(0, policy["retry"]["attempts_max"] - (task.attempts - task.spent)),
    }


def not_taken(at: Turn, ours: bool, take: bool, asked: Asked) -> None:
    """Refuse what somebody else is doing: who, and until when."""
    task, held = at.task, at.held
    if held is not None and lease.alive(held) and not ours and held.worker != lease.HAND + asked.by:
        raise HoldfastError(
            "busy",
            f"task {task.id} is held by {held.worker} until {rfc3339(held.lease_until / 1e6)}",
            "wait for it, or take another: hold task ls --status ready",
        )
    if task.taken_by is not None and task.taken_by != asked.by and not take:
        raise HoldfastError(
            "busy",
            f"task {task.id} is being done by hand by {task.taken_by} since {rfc3339(task.changed_at / 1e6)},"
            " until they finish or pause it",
            f"ask them, or take it over: hold task start {task.id} --take",
        )


def next_task(
    project: str, wanted: runs.Wanted, backends: list[str] | None, apart: bool, asked: Asked
) -> Transaction[Json]:
    """A task that a dead worker left, else the first that is ready, leased to this worker; else when to look again.

    `apart`: none whose scope overlaps that of an attempt under way, unless the policy allows it.
    """
    at = yield from task_rows.locked(project)
    before = yield Query("SELECT task FROM task_event WHERE request = ?", (asked.request,))
    if before:
        return (yield from _given_before((yield from task_rows.task(before[0][0])), asked))
    left = yield Query(
        "SELECT t.key FROM task t JOIN attempt a ON a.id = t.attempt WHERE t.project = ? AND t.status = 'active'"
        " AND a.ended_at IS NULL AND a.worker IS NOT NULL AND a.worker NOT LIKE 'hand:%' AND t.taken_by IS NULL"
        " AND a.lease_until <= ? ORDER BY t.n LIMIT ?",
        (project, at.now, _TRIED_MAX),
    )
    ready = yield Query(
        "SELECT key FROM task WHERE project = ? AND phase = ? AND waiting = 0 AND status IN ('pending', 'failed')"
        " AND retry_at <= ? ORDER BY n LIMIT ?",
        (project, at.active_phase or "", at.now, _TRIED_MAX),
    )
    busy = (yield from overlap.under_way(at)) if apart else []
    held_back: list[Json] = []
    for (key,) in [*left, *ready]:
        now = yield from turn(key, asked)
        if backends is not None and not (yield from _can_do(now, backends)):
            continue
        if now.held is not None and lease.alive(now.held):
            continue  # renewed in this moment
        beside = yield from overlap.in_the_way(now.task, busy)
        if beside is not None:
            held_back.append(beside)
            continue
        status = words.after("start", now.task.status, now.task.id)
        return (yield from begin(now, wanted, None, status, asked))
    return (yield from _nothing(at)) | {"held_back": held_back}


def _can_do(at: Turn, backends: list[str]) -> Transaction[bool]:
    """Whether one of these backends may do a task; where neither contract nor policy name any, all may."""
    contract = yield from task_rows.contract(at.task.key, at.task.contract)
    policy = yield from task_rows.policy(at.task.project, at.project.policy)
    order = policies.backends(contract, policy, at.task.phase, at.task.id)
    return not order or not set(order).isdisjoint(backends)


_TRIED_MAX = 32  # candidates of one look; what other backends are to do is skipped


def _nothing(at: Project) -> Transaction[Json]:
    """No task for now: what is left, and when something may become free by time alone."""
    counts = yield Query("SELECT status, COUNT(*) FROM task WHERE project = ? GROUP BY status", (at.name,))
    leased = yield Query(
        "SELECT MIN(a.lease_until) FROM task t JOIN attempt a ON a.id = t.attempt"
        " WHERE t.project = ? AND t.status = 'active' AND a.lease_until > ?",
        (at.name, at.now),
    )
    due = yield Query(
        "SELECT MIN(retry_at) FROM task WHERE project = ? AND status = 'failed' AND retry_at > ?", (at.name, at.now)
    )
    times = [int(t) for t in (leased[0][0], due[0][0]) if t]
    by = {str(status): int(n) for status, n in counts}
    never = yield from task_rows.never_ready(at.name, _TRIED_MAX)
    return {
        "never_ready": [{"task_id": id, "waits_for": need} for id, need in never],
        "run": None,
        "task": None,
        "active_phase": at.active_phase,
        "counts": by,
        "unfinished": sum(n for status, n in by.items() if status not in words.FINISHED),
        "next_in_s": (min(times) - at.now) / 1e6 if times else None,
    }


# -- verification and the end ------------------------------------------------------------------------------------------


def may_write(at: Turn, run: str | None, epoch: int | None, asked: Asked) -> None:
    """A worker by its epoch; a person while no worker is at it. An older run's words come too late."""
    if run is not None and run != at.task.run:
        raise Fenced(f"run {run} is not the current one of task {at.task.id}", "stop; the task goes on elsewhere")
    if epoch is not None:
        if at.held is None:
            raise Fenced(f"task {at.task.id} was never started", "start it first")
        lease.check(at.held, epoch)
    elif at.open:
        not_taken(at, False, True, asked)


def verified(key: str, run: str | None, epoch: int | None, results: list[Json], asked: Asked) -> Transaction[Json]:
    """What the verification said, kept with the attempt whether it passed or not."""
    at = yield from turn(key, asked)
    may_write(at, run, epoch, asked)
    if at.task.attempt is None:
        raise HoldfastError("conflict", f"task {at.task.id} was never started", f"hold task start {at.task.id}")
    record = yield from _record(at, results)
    if not at.again:
        body = {"passed": record["passed"], "failed": [r["command"] for r in results if r["state"] != "passed"]}
        yield from task_rows.note(key, "verified", at.task.status, asked, at.now, run=at.task.run, body=body)
    return record


def _record(at: Turn, results: list[Json]) -> Transaction[Json]:
    checks = yield from checks_of(at)
    record = judged(at.task.contract, results, checks) | {"at": rfc3339(at.now / 1e6)}
    text = json_values.encode(record, "the verification")
    yield Query("UPDATE attempt SET verification = ? WHERE id = ?", (text, at.task.attempt))
    return record


def checks_of(at: Turn) -> Transaction[list[Json]]:
    """The commands that decide, by the contract in force and the policy that the attempt began with."""
    version = at.project.policy
    if at.task.attempt is not None:
        kept = yield Query("SELECT policy_version FROM attempt WHERE id = ?", (at.task.attempt,))
        version = version if kept[0][0] is None else kept[0][0]
    contract = yield from task_rows.contract(at.task.key, at.task.contract)
    policy = yield from task_rows.policy(at.task.project, version)
    return task_contract.expand(contract, policy)


def may_finish(key: str, run: str | None, epoch: int | None, asked: Asked) -> Transaction[Json]:
    """What is to be verified before a task is done; refused here where no verification could make it so."""
    at = yield from turn(key, asked)
    yield from _finishable(at, run, epoch, asked)
    contract = yield from task_rows.contract(key, at.task.contract)
    return {
        "task_id": at.task.id,
        "project": at.task.project,
        "status": at.task.status,
        "root": at.project.root,
        "run_id": at.task.run,
        "contract": contract,
        "attempt": at.task.attempt if at.open or at.task.status == "active" else None,
        "contract_version": at.task.contract,
        "checks": (yield from checks_of(at)),
        "written_by": (yield from task_rows.authors(key, contract)),
    }


def _finishable(at: Turn, run: str | None, epoch: int | None, asked: Asked) -> Transaction[None]:
    if epoch is not None or run is not None:
        may_write(at, run, epoch, asked)  # a worker is told that it is fenced, whatever became of the task
    words.after("done", at.task.status, at.task.id)
    may_write(at, run, epoch, asked)
    yield from task_rows.in_the_way(at.task, at.project)
    doubts = yield Query(
        "SELECT s.key FROM step s JOIN run r ON r.id = s.run WHERE r.attempt = ? AND r.state = 'active'"
        " AND s.state IN ('open', 'in_doubt')",
        (at.task.attempt,),
    )
    if doubts:
        names = ", ".join(repr(key) for (key,) in doubts[:3])
        raise HoldfastError(
            "in_doubt",
            f"task {at.task.id} has {len(doubts)} unsettled steps: {names}",
            f"settle them first: hold step settle {at.task.run} KEY",
        )


def done(
    key: str, run: str | None, epoch: int | None, results: list[Json] | None, outcome: str, asked: Asked
) -> Transaction[Json]:
    """Accepted, if the verification of the contract in force passed. The phase moves on in the same breath."""
    at = yield from turn(key, asked)
    if at.again:
        return (yield from standing(at.task))
    yield from _finishable(at, run, epoch, asked)
    checks = yield from checks_of(at)
    if checks and results is not None:
        accept(at.task.id, at.task.contract, judged(at.task.contract, results, checks))
    elif checks:
        kept = yield Query("SELECT verification FROM attempt WHERE id = ?", (at.task.attempt,))
        accept(at.task.id, at.task.contract, json_values.decode(kept[0][0]) if kept else None)
    if not at.open and at.task.status != "active":  # done without a start: it still has an attempt, as evidence
        wanted = runs.Wanted(asked.request, key, None, None, None, None, 0, True, None, asked.by, why=asked.why)
        yield from begin(at, wanted, None, "active", asked._replace(request=asked.request + ":start"))
        at = yield from turn(key, asked)
    if results is not None:
        yield from _record(at, results)
    if at.open:
        yield from end_attempt(at, "done", outcome, asked)
    yield from task_rows.write(key, at.now, status="done", taken_by=None, report=None, ended_at=at.now)
    yield from task_rows.release_dependents(key)
    active = yield from task_rows.advance(at.project)
    body = {"phase_completed": at.task.phase} if active != at.project.active_phase else None
    yield from task_rows.note(key, "done", "done", asked, at.now, run=at.task.run, body=body)
    return (yield from standing((yield from task_rows.task(key))))


def end_attempt(
    at: Turn, state: str, outcome: str, asked: Asked, classification: Json | None = None
) -> Transaction[None]:
    """The attempt and all its runs have ended; whoever still writes is fenced."""
    held = at.held
    assert held is not None
    yield Query(
        "UPDATE run SET state = ?, ended_at = ?, outcome = ? WHERE attempt = ? AND state = 'active'",
        (state, held.now, outcome, held.attempt),
    )
    text = None if classification is None else json_values.encode(classification, "the classification")
    yield Query(
        "UPDATE attempt SET ended_at = ?, outcome = ?, lease_until = 0,"
        " classification = COALESCE(?, classification) WHERE id = ?",
        (held.now, state, text, held.attempt),
    )
    event: Json = {"event": "end", "state": state} | ({"why": asked.why} if asked.why else {})
    assert at.task.run is not None
    yield from queries.append(
        at.task.run, "run", json_values.encode(event, "event"), at=held.now, epoch=held.epoch, by=asked.by
    )


def fence(held: Held) -> Transaction[None]:
    """Take the lease from whoever has it, and give it to nobody: later writes under the old epoch are refused."""
    yield Query("UPDATE attempt SET epoch = epoch + 1, lease_until = 0 WHERE id = ?", (held.attempt,))


# -- what others are told ----------------------------------------------------------------------------------------------


def standing(task: Task) -> Transaction[Json]:
    """A task in short: the answer to a change."""
    project = yield from task_rows.project(task.project)
    ready = task_rows.ready(task, project)
    return {
        "task_id": task.id,
        "project": task.project,
        "title": task.title,
        "phase": task.phase,
        "status": words.shown(task.status, ready),
        "ready": ready,
        "run_id": task.run,
        "attempt_count": task.attempts,
        "active_phase": project.active_phase,
    }


def known_backends(names: list[str]) -> Transaction[None]:
    """Refuse a backend that nobody has described."""
    for name in names:
        if name in policies.BUILTIN:
            continue
        if not (yield Query(f"SELECT 1 FROM backend WHERE name = ? AND {KEPT}", (name,))):
            raise not_found(
                f"there is no backend {name[:64]!r}", f"hold backend ls, or hold backend add {name[:64]} -- CMD ARG…"
            )
