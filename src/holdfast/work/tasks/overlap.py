"""Attempts side by side: one whose scope overlaps that of another would see, and be judged by, its changes."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.work import scope_overlap
from ...store.base import Query, Transaction
from . import rows as task_rows
from .rows import Project, Task

Json = dict[str, Any]


class Busy(NamedTuple):
    """A task that a worker is at."""

    key: str
    id: str
    files: list[str]


def under_way(at: Project) -> Transaction[list[Busy]]:
    """What workers are at now, by the database's clock; nothing where the policy lets attempts overlap."""
    policy = yield from task_rows.policy(at.name, at.policy)
    if policy.get("overlap") == "allow":
        return []
    rows = yield Query(
        "SELECT t.key, t.id, t.contract FROM task t JOIN attempt a ON a.id = t.attempt WHERE t.project = ?"
        " AND t.status = 'active' AND a.ended_at IS NULL AND a.lease_until > ? AND a.worker NOT LIKE 'hand:%'"
        " ORDER BY t.n",
        (at.name, at.now),
    )
    found = []
    for key, id, version in rows:
        found.append(Busy(key, id, (yield from _files(key, version))))
    return found


def _files(key: str, version: int) -> Transaction[list[str]]:
    """What a task may change: its scope, and what it is to make."""
    contract = yield from task_rows.contract(key, version)
    return [*contract["scope"], *contract["artifacts"]]


def in_the_way(task: Task, busy: list[Busy]) -> Transaction[Json | None]:
    """The attempt that this task waits for, and the two globs that meet."""
    others = [one for one in busy if one.key != task.key]
    files = (yield from _files(task.key, task.contract)) if others else []
    for one in others:
        shared = scope_overlap.overlap(files, one.files)
        if shared is not None:
            return {"task_id": task.id, "beside": one.id, "scope": shared[0], "overlaps": shared[1]}
    return None
