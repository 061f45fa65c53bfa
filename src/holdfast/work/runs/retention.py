"""What may go: ended work that is older than asked for, whole; and how much room the work takes.

Never what is unfinished, and never what has a step that is open or in doubt. A project goes as a whole, once every task
of it is finished and has been for so long: until then its tasks are what the project rests on.
"""

from __future__ import annotations

from typing import Any

from ...store import queries
from ...store.base import Query, Transaction
from ..artifacts import rows as artifacts

Json = dict[str, Any]
_BATCH = 200  # attempts of one transaction: others write in between

_UNSETTLED = (
    "EXISTS (SELECT 1 FROM step s JOIN run r ON r.id = s.run WHERE r.attempt = a.id"
    " AND s.state IN ('open', 'in_doubt'))"
)
_ENDED = (
    "a.ended_at IS NOT NULL AND a.ended_at <= ? AND NOT "
    + _UNSETTLED
    + " AND NOT EXISTS (SELECT 1 FROM run r WHERE r.attempt = a.id AND (r.ended_at IS NULL OR r.ended_at > ?))"
)
_OF_RUN = ("step", "log", "run_session", "checkpoint", "checkpoint_policy", "claim", "holding")  # what hangs on a run


def prune(older: int) -> Transaction[Json]:
    """One batch of what ended more than `older` microseconds ago; `more`: there is more of it."""
    now = yield from queries.now()
    limit = now - older
    counts = {"projects": 0, "tasks": 0, "runs": 0, "steps": 0, "bytes": 0}
    rows = yield Query(
        f"SELECT a.id FROM attempt a WHERE {_ENDED} AND NOT EXISTS (SELECT 1 FROM task t WHERE t.key = a.task)"
        " ORDER BY a.ended_at, a.id LIMIT ?",
        (limit, limit, _BATCH),
    )
    yield from _forget([str(attempt) for (attempt,) in rows], counts)
    if len(rows) == _BATCH:
        return {**counts, "more": True}
    finished = yield from _finished_project(limit)
    if finished is not None:
        yield Query("SELECT name FROM project WHERE name = ? {for_update}", (finished,))
        if (yield from _finished_project(limit, finished)) is not None:  # nobody brought a task back meanwhile
            yield from _forget_project(finished, counts)
    return {**counts, "more": finished is not None}


def _forget(attempts: list[str], counts: Json) -> Transaction[None]:
    """Attempts with their runs and all that hangs on them; artifacts without another name go, too."""
    if not attempts:
        return
    marks = ", ".join("?" * len(attempts))
    # A remark that somebody is just adding to one of them is there by then, and goes with the rest.
    yield Query(f"SELECT id FROM attempt WHERE id IN ({marks}) ORDER BY id {{for_update}}", tuple(attempts))
    runs = yield Query(f"SELECT id FROM run WHERE attempt IN ({marks})", tuple(attempts))
    for (run,) in runs:
        gone = yield Query("DELETE FROM step WHERE run = ? RETURNING key", (run,))
        counts["steps"] += len(gone)
        for table in _OF_RUN[1:]:
            yield Query(f"DELETE FROM {table} WHERE run = ?", (run,))
        names = yield Query("SELECT name FROM ref WHERE owner = ?", (run,))
        for (name,) in names:
            counts["bytes"] += yield from artifacts.forget(run, name)
        yield Query("DELETE FROM run WHERE id = ?", (run,))
        counts["runs"] += 1
    yield Query(f"DELETE FROM attempt WHERE id IN ({marks})", tuple(attempts))


def _finished_project(limit: int, name: str | None = None) -> Transaction[str | None]:
    """A project with tasks, all of which were finished by then, with nothing in doubt."""
    rows = yield Query(
        "SELECT p.name FROM project p WHERE EXISTS (SELECT 1 FROM task t WHERE t.project = p.name)"
        " AND NOT EXISTS (SELECT 1 FROM task t WHERE t.project = p.name"
        " AND (t.status NOT IN ('done', 'cancelled') OR t.changed_at > ?))"
        " AND NOT EXISTS (SELECT 1 FROM task t JOIN attempt a ON a.task = t.key WHERE t.project = p.name"
        f" AND NOT ({_ENDED})) AND (? = '' OR p.name = ?) ORDER BY p.name LIMIT 1",
        (limit, limit, limit, name or "", name or ""),
    )
    return str(rows[0][0]) if rows else None


def _forget_project(name: str, counts: Json) -> Transaction[None]:
    """Under the project's lock."""
    attempts = yield Query("SELECT a.id FROM attempt a JOIN task t ON t.key = a.task WHERE t.project = ?", (name,))
    for n in range(0, len(attempts), _BATCH):
        yield from _forget([str(attempt) for (attempt,) in attempts[n : n + _BATCH]], counts)
    of = "(SELECT key FROM task WHERE project = ?)"
    for table, column in (("claim", "task"), ("dependency", "task"), ("contract", "task"), ("task_event", "task")):
        yield Query(f"DELETE FROM {table} WHERE {column} IN {of}", (name,))
    gone = yield Query("DELETE FROM task WHERE project = ? RETURNING key", (name,))
    yield Query("DELETE FROM policy WHERE project = ?", (name,))
    yield Query("DELETE FROM project WHERE name = ?", (name,))
    counts["tasks"] += len(gone)
    counts["projects"] += 1


_COUNTED = ("project", "task", "attempt", "run", "step", "log", "checkpoint", "claim")


def usage() -> Transaction[Json]:
    """Rows of each kind, and the bytes of those that can be large."""
    counts: Json = {}
    for table in _COUNTED:
        rows = yield Query(f"SELECT COUNT(*) FROM {table}")
        counts[table] = int(rows[0][0])
    named = yield Query("SELECT COUNT(*), COALESCE(SUM(size), 0) FROM blob")
    log = yield Query("SELECT COALESCE(SUM(LENGTH(body)), 0) FROM log")
    saved = yield Query("SELECT COALESCE(SUM(LENGTH(record)), 0) FROM checkpoint")
    threads = yield Query("SELECT COUNT(*), COALESCE(SUM(LENGTH(record)), 0) FROM thread_checkpoint")
    return {
        "rows": {**counts, "thread_checkpoint": int(threads[0][0]), "artifact": int(named[0][0])},
        "bytes": {
            "artifacts": int(named[0][1]),
            "log": int(log[0][0]),
            "checkpoints": int(saved[0][0]),
            "threads": int(threads[0][1]),
        },
    }
