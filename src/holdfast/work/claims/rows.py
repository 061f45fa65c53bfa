"""Claims in the store: made, listed, removed, and how the last look at each ended."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import invalid, not_found
from ...model.limits import CLAIMS_MAX
from ...model.times import rfc3339
from ...store import queries
from ...store.base import Query, Row, Transaction
from ...wire import json_values
from . import rules

Json = dict[str, Any]
_COLUMNS = "id, task, run, kind, spec, seen, host, by_whom, at, state, evidence, checked_at, checked_by"
_REMOVED = "removed"  # the state of one that was taken back: nobody's, and only known by the request that did it
_REMEMBERED_US = 86_400_000_000  # a day: far longer than anybody asks again for an answer that was lost


class New(NamedTuple):
    id: str
    task: str | None
    run: str | None
    kind: str
    spec: str
    seen: str
    host: str | None
    by: str
    request: str


def add(new: New) -> Transaction[Json]:
    known = yield Query(f"SELECT {_COLUMNS} FROM claim WHERE request = ? AND state <> ?", (new.request, _REMOVED))
    if known:
        return describe(known[0])
    if new.run is not None:
        yield from queries.seen(new.run)  # there is such a run
    owner, whose = ("run", new.run) if new.task is None else ("task", new.task)
    count = yield Query(f"SELECT COUNT(*) FROM claim WHERE {owner} = ?", (whose,))
    if int(count[0][0]) >= CLAIMS_MAX:
        raise invalid(f"{whose} has {CLAIMS_MAX} claims already", "hold claim rm takes back what is no longer claimed")
    now = yield from queries.now()
    yield Query(
        "INSERT INTO claim (id, task, run, kind, spec, seen, host, by_whom, at, request, state, evidence)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'unknown', '{}')",
        (new.id, new.task, new.run, new.kind, new.spec, new.seen, new.host, new.by, now, new.request),
    )
    return (yield from one(new.id))


def one(claim: str) -> Transaction[Json]:
    rows = yield Query(
        f"SELECT {_COLUMNS} FROM claim WHERE substr(id, 1, ?) = ? AND state <> ? LIMIT 2", (len(claim), claim, _REMOVED)
    )
    if len(rows) != 1:
        what = f"{claim[:40]!r} begins several claims" if rows else f"no claim {claim[:40]!r}"
        raise not_found(what, "hold claim ls")
    return describe(rows[0])


def remove(claim: str, request: str) -> Transaction[Json]:
    """Its row says for a day that it was taken back, by which request: asked again, because the answer was lost, that
    is the answer."""
    before = yield Query("SELECT id FROM claim WHERE request = ? AND state = ?", (request, _REMOVED))
    if before:
        return {"id": before[0][0], "removed": True}
    found = yield from one(claim)
    now = yield from queries.now()
    yield Query("DELETE FROM claim WHERE state = ? AND checked_at < ?", (_REMOVED, now - _REMEMBERED_US))
    yield Query(
        "UPDATE claim SET task = NULL, run = NULL, spec = '{}', seen = '{}', evidence = '{}', state = ?, request = ?,"
        " checked_at = ? WHERE id = ?",
        (_REMOVED, request, now, found["id"]),
    )
    return {"id": found["id"], "removed": True}


def listing(task: str | None, run: str | None, limit: int = CLAIMS_MAX) -> Transaction[list[Json]]:
    """Of a task (its runs' too), of a run (its task's too: what it relies on), or all; oldest first."""
    if task is not None:
        where = "task = ? OR run IN (SELECT r.id FROM run r JOIN attempt a ON a.id = r.attempt WHERE a.task = ?)"
        args: tuple[Any, ...] = (task, task)
    elif run is not None:
        whose = "SELECT a.task FROM run r JOIN attempt a ON a.id = r.attempt WHERE r.id = ?"
        where, args = f"run = ? OR task = ({whose})", (run, run)
    else:
        where, args = "state <> ?", (_REMOVED,)
    rows = yield Query(f"SELECT {_COLUMNS} FROM claim WHERE {where} ORDER BY at, id LIMIT ?", (*args, limit))
    return [describe(row) for row in rows]


def checked(results: list[tuple[str, str, str]], by: str) -> Transaction[Json]:
    """(claim, state, evidence) of each; one that was removed meanwhile is passed over."""
    now = yield from queries.now()
    for claim, state, evidence in results:
        yield Query(
            "UPDATE claim SET state = ?, evidence = ?, checked_at = ?, checked_by = ? WHERE id = ? AND state <> ?",
            (state, evidence, now, by, claim, _REMOVED),
        )
    return {"checked": len(results), "at": rfc3339(now / 1e6)}


def describe(row: Row) -> Json:
    names = ("id", "task", "run", "kind")
    claim: Json = dict(zip(names, row, strict=False))
    claim |= {"spec": json_values.decode(row[4]), "seen": json_values.decode(row[5]), "host": row[6], "by": row[7]}
    looked = json_values.decode(row[10]) or {}
    claim |= {
        "at": rfc3339(row[8] / 1e6),
        "state": row[9],
        "said": looked.get("said"),
        "evidence": looked.get("evidence") or {},
        "checked_at": rfc3339(row[11] / 1e6) if row[11] else None,
        "checked_by": row[12],
    }
    return {**claim, "claim": rules.told(claim)}
