"""Policies of projects, in versions, and backends: kept, listed, removed."""

from __future__ import annotations

from typing import Any

from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import BACKENDS_MAX
from ...model.times import rfc3339
from ...model.work import policy
from ...store import queries
from ...store.base import Query, Transaction
from ...wire import json_values
from . import rows as task_rows
from .attempts import KEPT, known_backends
from .rows import Asked

Json = dict[str, Any]
_REMEMBERED_US = 86_400_000_000  # a day: far longer than anybody asks again for an answer that was lost


def set_policy(project: str, body: Json, asked: Asked) -> Transaction[Json]:
    """The next version. Attempts that have begun keep theirs."""
    at = yield from task_rows.locked(project)
    before = yield Query("SELECT version FROM policy WHERE request = ?", (asked.request,))
    if not before:
        yield from known_backends([*body["backends"], *(b for rule in body["routing"] for b in rule["backends"])])
        yield Query(
            "INSERT INTO policy (project, version, at, by_whom, why, request, body) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                project,
                at.policy + 1,
                at.now,
                asked.by,
                asked.why,
                asked.request,
                json_values.encode(body, "the policy"),
            ),
        )
        yield Query("UPDATE project SET policy = policy + 1 WHERE name = ?", (project,))
    return (yield from show_policy(project, before[0][0] if before else at.policy + 1))


def show_policy(project: str, version: int | None) -> Transaction[Json]:
    at = yield from task_rows.project(project)
    body = yield from task_rows.policy(project, at.policy if version is None else version)
    rows = yield Query(
        "SELECT version, at, by_whom, why FROM policy WHERE project = ? ORDER BY version DESC LIMIT 100", (project,)
    )
    versions = [{"version": v, "at": rfc3339(t / 1e6), "by": b, "why": w} for v, t, b, w in rows]
    # Of all versions, the latest first: whose word it is does not change when others write many more.
    authors = yield Query(
        "SELECT by_whom FROM policy WHERE project = ? GROUP BY by_whom ORDER BY MAX(version) DESC", (project,)
    )
    return {
        "project": project,
        "version": at.policy if version is None else version,
        "current": at.policy,
        "policy": body,
        "versions": versions,
        "authors": [str(by) for (by,) in authors],
    }


def add_backend(name: str, body: Json, asked: Asked) -> Transaction[Json]:
    """A command line by name; one of one's own under a known name takes its place."""
    now = yield from queries.now()
    count = (yield Query(f"SELECT COUNT(*) FROM backend WHERE {KEPT}"))[0][0]
    if count >= BACKENDS_MAX:
        raise invalid(f"there are {BACKENDS_MAX} backends already", "remove one first: hold backend rm NAME")
    yield Query(
        "INSERT INTO backend (name, at, by_whom, why, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (name)"
        " DO UPDATE SET at = excluded.at, by_whom = excluded.by_whom, why = excluded.why, body = excluded.body",
        (name, now, asked.by, asked.why, json_values.encode(body, "the backend")),
    )
    return {"name": name, "builtin": False, **body, "at": rfc3339(now / 1e6), "by": asked.by}


def backends() -> Transaction[list[Json]]:
    """Those described here, and the ones that need no description."""
    rows = yield Query(f"SELECT name, at, by_whom, body FROM backend WHERE {KEPT} ORDER BY name")
    made = {
        str(name): {"name": name, "builtin": False, **json_values.decode(body), "at": rfc3339(at / 1e6), "by": by}
        for name, at, by, body in rows
    }
    for name in policy.BUILTIN:
        plain = {
            "name": name,
            "builtin": True,
            "template": None,
            "env": {},
            "timeout_s": None,
            "terminal": name == "shell",
            "at": None,
            "by": None,
        }
        made.setdefault(name, plain)
    return [made[name] for name in sorted(made)]


def remove_backend(name: str, asked: Asked) -> Transaction[Json]:
    """Its row says for a day that it was removed, by which request: asked again, because the answer was lost, that is
    the answer."""
    now = yield from queries.now()
    rows = yield Query("SELECT body FROM backend WHERE name = ?", (name,))
    removed = json_values.decode(rows[0][0]).get("removed") if rows else None
    if removed == asked.request:
        return {"name": name, "removed": True}
    if not rows or removed is not None:
        raise not_found(f"there is no backend {name[:64]!r} to remove", "hold backend ls")
    used = yield Query(
        "SELECT key FROM task WHERE backend = ? AND status NOT IN ('done', 'cancelled') LIMIT 1", (name,)
    )
    if used and name not in policy.BUILTIN:
        raise HoldfastError("conflict", f"task {used[0][0]} is for backend {name}", "hold task edit it first")
    yield Query(f"DELETE FROM backend WHERE NOT ({KEPT}) AND at < ?", (now - _REMEMBERED_US,))
    yield Query(
        "UPDATE backend SET at = ?, by_whom = ?, why = ?, body = ? WHERE name = ?",
        (now, asked.by, asked.why, json_values.encode({"removed": asked.request}, "the backend"), name),
    )
    return {"name": name, "removed": True}
