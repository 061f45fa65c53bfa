"""The rows of tasks: read under the project's lock, written with the event that changed them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import HoldfastError, not_found
from ...model.times import rfc3339
from ...model.work import policy as policies
from ...model.work import task_states as tasks
from ...store.base import Query, Transaction
from ...wire import json_values

Json = dict[str, Any]


class Project(NamedTuple):
    """A project, and the clock once its lock was held."""

    name: str
    root: str
    phases: str  # JSON
    active_phase: str | None
    policy: int
    tasks: int
    given: int
    created_at: int
    now: int


class Task(NamedTuple):
    key: str
    project: str
    id: str
    n: int
    title: str
    phase: str
    status: str
    contract: int
    waiting: int
    attempts: int
    spent: int
    retry_at: int
    attempt: str | None
    run: str | None
    backend: str | None
    taken_by: str | None
    report: str | None  # JSON
    created_at: int
    changed_at: int
    ended_at: int | None


class Asked(NamedTuple):
    """Who wants something done to a task, why, and the id by which a repetition is known."""

    by: str
    request: str
    why: str | None = None


_PROJECT = "name, root, phases, active_phase, policy, tasks, given, created_at"
_UNFINISHED = "SELECT 1 FROM task WHERE project = ? AND phase = ? AND status NOT IN ('done', 'cancelled') LIMIT 1"
TASK = ", ".join(f"t.{f}" for f in Task._fields)


# -- projects ----------------------------------------------------------------------------------------------------------


def locked(name: str) -> Transaction[Project]:
    """Lock the project: every change of a task begins with this, so that they come one after another."""
    rows = yield Query(
        f"WITH held AS MATERIALIZED (SELECT {_PROJECT} FROM project WHERE name = ? {{for_update}})"
        f" SELECT {_PROJECT}, {{now}} FROM held",
        (name,),
    )
    if not rows:
        raise not_found(f"no project {name[:80]!r}", "hold project ls, or hold project init NAME")
    return Project(*rows[0])


def project(name: str) -> Transaction[Project]:
    """The project as it is, without a lock."""
    rows = yield Query(f"SELECT {_PROJECT}, {{now}} FROM project WHERE name = ?", (name,))
    if not rows:
        raise not_found(f"no project {name[:80]!r}", "hold project ls, or hold project init NAME")
    return Project(*rows[0])


def find_project(wanted: str | None, cwd: str | None) -> Transaction[str]:
    """The name of the project that is meant: the one named, the one whose root holds this folder, or the only one."""
    if wanted is not None:
        found = yield from project(tasks.check_id(wanted, "a project's name"))
        return found.name
    rows = yield Query("SELECT name, root FROM project ORDER BY name")
    return tasks.current([(str(n), str(r)) for n, r in rows], cwd)


def find_key(wanted: str, named: str | None, cwd: str | None) -> Transaction[str]:
    """A task's key from what a person typed: PROJECT/ID, or an ID of the current project."""
    of, id = tasks.split(wanted)
    if of is None:
        of = yield from find_project(named, cwd)
    key = tasks.key(of, id)
    rows = yield Query("SELECT 1 FROM task WHERE key = ?", (key,))
    if not rows:
        raise not_found(f"no task {id!r} in project {of!r}", f"hold task ls --project {of}")
    return key


def managed(wanted: str, named: str | None, cwd: str | None) -> Transaction[str | None]:
    """The key of the task that `begin_run` means, or None where the name stands for itself."""
    try:
        return (yield from find_key(wanted, named, cwd))
    except HoldfastError:
        return None


def advance(project: Project) -> Transaction[str | None]:
    """The active phase after a task of it was added, finished or brought back; written where it is another."""
    phases, left, used = json_values.decode(project.phases), list[str](), list[str]()
    for phase in phases:  # each is one look into an index, and the first that has something left ends it
        if (yield Query(_UNFINISHED, (project.name, phase))):
            left.append(phase)
            break
        if (yield Query("SELECT 1 FROM task WHERE project = ? AND phase = ? LIMIT 1", (project.name, phase))):
            used.append(phase)
    active = tasks.active_phase(phases, used, left)
    if active != project.active_phase:
        yield Query("UPDATE project SET active_phase = ? WHERE name = ?", (active, project.name))
    return active


# -- tasks -------------------------------------------------------------------------------------------------------------


def task(key: str) -> Transaction[Task]:
    rows = yield Query(f"SELECT {TASK} FROM task t WHERE t.key = ?", (key,))
    if not rows:
        raise not_found(f"no task {key[:160]!r}", "hold task ls")
    return Task(*rows[0])


def happened(request: str) -> Transaction[bool]:
    """Whether this request was applied before: its answer was lost, and it is given again."""
    rows = yield Query("SELECT 1 FROM task_event WHERE request = ?", (request,))
    return bool(rows)


def note(
    task: str, event: str, status: str, asked: Asked, now: int, *, run: str | None = None, body: Json | None = None
) -> Transaction[None]:
    yield Query(
        "INSERT INTO task_event (task, seq, at, by_whom, event, status, run, why, request, body)"
        " SELECT ?, COALESCE(MAX(seq), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ? FROM task_event WHERE task = ?",
        (
            task,
            now,
            asked.by,
            event,
            status,
            run,
            asked.why,
            asked.request,
            None if body is None else json_values.encode(body, "the event"),
            task,
        ),
    )
    yield Query("SELECT {news_tasks}")


def write(key: str, now: int, **columns: Any) -> Transaction[None]:
    """Some columns of a task; their names are ours, never a caller's."""
    names = ", ".join(f"{name} = ?" for name in columns)
    yield Query(f"UPDATE task SET {names}, changed_at = ? WHERE key = ?", (*columns.values(), now, key))


def depends_on(key: str) -> Transaction[list[tuple[str, str]]]:
    """(id, status) of what a task needs, in the order in which they were added."""
    rows = yield Query(
        "SELECT t.id, t.status FROM dependency d JOIN task t ON t.key = d.needs WHERE d.task = ? ORDER BY t.n", (key,)
    )
    return [(str(i), str(s)) for i, s in rows]


def never_ready(project: str, limit: int) -> Transaction[list[tuple[str, str]]]:
    """(id, id of the task it waits for, which was cancelled): nobody will ever finish that, so this never begins."""
    rows = yield Query(
        "SELECT t.id, n.id FROM task n JOIN dependency d ON d.needs = n.key JOIN task t ON t.key = d.task"
        " WHERE n.project = ? AND n.status = 'cancelled' AND t.status NOT IN ('done', 'cancelled')"
        " ORDER BY t.n, n.n LIMIT ?",
        (project, limit),
    )
    return [(str(id), str(need)) for id, need in rows]


def release_dependents(key: str) -> Transaction[None]:
    """Those that need this task, which is done, wait for one less."""
    needing = "(SELECT task FROM dependency WHERE needs = ?)"
    yield Query(f"UPDATE task SET waiting = waiting - 1 WHERE key IN {needing}", (key,))


def contract(key: str, version: int) -> Transaction[Json]:
    rows = yield Query("SELECT body FROM contract WHERE task = ? AND version = ?", (key, version))
    if not rows:
        raise not_found(f"task {key.rpartition('/')[2]} has no contract version {version}", "hold task show lists them")
    body: Json = json_values.decode(rows[0][0])
    return body


def authors(key: str, contract: Json) -> Transaction[list[str]]:
    """Everybody whose words a task's commands are: of its contract, and of the policy where that has some of them."""
    rows = yield Query("SELECT DISTINCT by_whom FROM contract WHERE task = ?", (key,))
    if any("profile" in check for check in contract["verification"]):
        rows += yield Query("SELECT DISTINCT by_whom FROM policy WHERE project = ?", (tasks.split(key)[0],))
    return sorted({str(by) for (by,) in rows})


def policy(project: str, version: int) -> Transaction[Json]:
    if version == 0:
        return policies.default()
    rows = yield Query("SELECT body FROM policy WHERE project = ? AND version = ?", (project, version))
    if not rows:
        raise not_found(f"project {project} has no policy version {version}", "hold policy show lists them")
    body: Json = json_values.decode(rows[0][0])
    return body


def ready(task: Task, project: Project) -> bool:
    return tasks.ready(
        task.status,
        waiting=task.waiting,
        phase=task.phase,
        active=project.active_phase,
        retry_at=task.retry_at,
        now=project.now,
    )


def in_the_way(task: Task, project: Project) -> Transaction[None]:
    """Refuse what cannot begin yet: what it waits for, in one line."""
    if task.waiting:
        needs = yield from depends_on(task.key)
        left = [f"{id} ({status})" for id, status in needs if status != "done"]
        more = f" and {len(left) - 5} more" if len(left) > 5 else ""
        raise HoldfastError(
            "conflict",
            f"task {task.id} waits for {', '.join(left[:5])}{more}",
            "finish these first, or hold task edit; a cancelled one comes back with hold task retry",
        )
    if task.phase != project.active_phase and task.status != "active":
        raise HoldfastError(
            "conflict",
            f"task {task.id} is of phase {task.phase}, and {project.active_phase} is the active one",
            "finish that phase first: hold project show",
        )


def sessions(task: Task) -> Transaction[list[Json]]:
    """The sessions that the task's runs used, of every attempt; `began` is when that attempt did."""
    rows = yield Query(
        "SELECT u.session, u.generation, MIN(u.from_offset), MIN(a.created_at), MIN(r.id) FROM attempt a"
        " JOIN run r ON r.attempt = a.id JOIN run_session u ON u.run = r.id WHERE a.task = ?"
        " GROUP BY u.session, u.generation ORDER BY MIN(u.at), u.session",
        (task.key,),
    )
    return [
        {"session": s, "generation": g, "from_offset": o, "attempt_began_at": rfc3339(b / 1e6), "run_id": r}
        for s, g, o, b, r in rows
    ]
