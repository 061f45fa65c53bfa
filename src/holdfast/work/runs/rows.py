"""A run's life: begun, resumed by whoever may take its lease, ended; and what its status says."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model import ids
from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import ITEMS_MAX, KEY_MAX
from ...model.times import rfc3339
from ...model.work.effects import check_word
from ...store import queries
from ...store.base import Held, Query, Run, Step, Transaction
from ...wire import json_values
from ..steps import report
from . import lease
from .worker_process import Process

Json = dict[str, Any]
_ID_LENGTH = len(ids.new("run_"))

# Whether no worker takes an active run before a person has done something: settled the step it waits for, or, where its
# workers died at it, had it tried again.
PARKED = (
    "(r.parked IS NOT NULL OR EXISTS"
    " (SELECT 1 FROM step s WHERE s.run = r.id AND s.key = r.waits_for AND s.state = 'in_doubt'))"
)


class Wanted(NamedTuple):
    """What `begin_run` was asked for, checked and encoded."""

    request: str
    task: str | None
    run: str | None
    params: str | None
    items: str | None
    worker: str | None  # None: nobody holds it yet
    ttl: int
    again: bool
    parent: str | None
    by: str
    job: str | None = None  # the name under which workers know what to do
    why: str | None = None
    process: Process | None = None  # of the worker


def check_items(items: object) -> list[str]:
    if not isinstance(items, list) or len(items) > ITEMS_MAX:
        raise invalid(f"items are a list of at most {ITEMS_MAX:,} names", "declare fewer, larger ones")
    for item in items:
        check_word("an item", item, KEY_MAX)
    if len(set(items)) != len(items):
        raise invalid("an item is named twice", "items are told apart by their names")
    return items


def begin(wanted: Wanted) -> Transaction[Json]:
    """The run that was asked for: by its id, the task's current one, or a new one."""
    known = yield Query("SELECT id FROM run WHERE request = ?", (wanted.request,))
    if known:
        return (yield from _resume(known[0][0], wanted))
    if wanted.run is not None:
        return (yield from _resume(wanted.run, wanted))
    if wanted.task is None:
        return (yield from _create(wanted, 1))
    while True:
        latest = yield Query(
            "SELECT id, n, ended_at, outcome FROM attempt WHERE task = ? ORDER BY n DESC LIMIT 1", (wanted.task,)
        )
        attempt, n, ended_at, outcome = latest[0] if latest else (None, 0, 0, None)
        if attempt is not None and (ended_at is None or (outcome == "done" and not wanted.again)):
            found = yield Query(
                "SELECT id FROM run WHERE attempt = ? AND forked_from IS NULL ORDER BY created_at DESC, id LIMIT 1",
                (attempt,),
            )
            return (yield from _resume(found[0][0], wanted))
        made = yield from _create(wanted, n + 1)
        if made:
            return made
        # Somebody began the same task in this moment: theirs is the one.


def _create(wanted: Wanted, n: int) -> Transaction[Json]:
    """A new attempt with its run; empty where another one was quicker."""
    now = yield from queries.now()
    attempt, run = ids.new("att_"), ids.new("run_")
    until = now + wanted.ttl if wanted.worker else 0
    made = yield Query(
        "INSERT INTO attempt (id, task, n, worker, instance, epoch, lease_until, request, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (task, n) DO NOTHING RETURNING id",
        (
            attempt,
            wanted.task,
            n,
            wanted.worker,
            wanted.process.id if wanted.process else None,
            1 if wanted.worker else 0,
            until,
            wanted.request,
            now,
        ),
    )
    if not made:
        return {}
    yield Query(
        "INSERT INTO run (id, attempt, state, params, items, parent, request, created_at, job)"
        " VALUES (?, ?, 'active', ?, ?, ?, ?, ?, ?)",
        (run, attempt, wanted.params or "{}", wanted.items, wanted.parent, wanted.request, now, wanted.job),
    )
    about = {"event": "begin", "task": wanted.task, "worker": wanted.worker} | _given(job=wanted.job, why=wanted.why)
    event = json_values.encode(about, "event")
    yield from queries.append(run, "run", event, at=now, epoch=0, by=wanted.by)
    return (yield from answer(run, resumed=False))


def _resume(run: str, wanted: Wanted) -> Transaction[Json]:
    held = yield from queries.held(run)
    kept = yield from queries.run(run)
    for what, old, new in (
        ("other params", kept.params, wanted.params),
        ("other items", kept.items, wanted.items),
        ("another job", kept.job, wanted.job),
    ):
        if new is not None and new != old:
            raise HoldfastError(
                "conflict", f"the run {run} was begun with {what}", "leave them out to resume it, or end it first"
            )
    first = (
        yield Query(
            "SELECT request, (SELECT request FROM run WHERE id = ?) FROM attempt WHERE id = ?", (run, held.attempt)
        )
    )[0]
    given = first[0] == wanted.request and lease.alive(held)  # the answer was lost; the lease was given
    if wanted.worker and not given and kept.ended_at is None:
        lease.may_take(held, wanted.worker, wanted.process)
        yield from lease.grant(run, held, wanted.worker, wanted.ttl, wanted.request, wanted.process)
    return (yield from answer(run, resumed=first[1] != wanted.request))


def answer(run: str, *, resumed: bool) -> Transaction[Json]:
    kept = yield from queries.run(run)
    held = yield from queries.seen(run)
    doubts = yield Query("SELECT key FROM step WHERE run = ? AND state = 'in_doubt'", (run,))
    return {
        "run": run,
        "task": kept.task,
        "job": kept.job,
        "attempt": kept.attempt,
        "n": held.n,
        "state": kept.state,
        "resumed": resumed,
        "worker": held.worker,
        "epoch": held.epoch,
        "lease_until": _time(held.lease_until),
        "params": json_values.decode(kept.params),
        "items": json_values.decode(kept.items),
        "in_doubt": sorted(key for (key,) in doubts),  # here: databases disagree about the order of text
    }


def end(
    run: str, epoch: int | None, state: str, outcome: str, by: str, request: str, why: str | None = None
) -> Transaction[Json]:
    """No more writes. Not while a step is open or in doubt: that would hide it."""
    held = yield from queries.held(run)
    if (yield from queries.appended(run, request)):
        return {"run": run, "state": state}
    epoch = yield from lease.writer(run, held, epoch, by, request)
    left = yield Query("SELECT key FROM step WHERE run = ? AND state IN ('open', 'in_doubt')", (run,))
    if left and state == "done":
        names = ", ".join(repr(key) for (key,) in left[:3])
        raise HoldfastError("in_doubt", f"the run has {len(left)} unsettled steps: {names}", "settle them first")
    yield Query("UPDATE run SET state = ?, ended_at = ?, outcome = ? WHERE id = ?", (state, held.now, outcome, run))
    yield Query("DELETE FROM holding WHERE run = ?", (run,))
    others = yield Query("SELECT 1 FROM run WHERE attempt = ? AND state = 'active' LIMIT 1", (held.attempt,))
    if not others:
        yield Query(
            "UPDATE attempt SET ended_at = ?, outcome = ?, lease_until = 0 WHERE id = ?",
            (held.now, state, held.attempt),
        )
    event = json_values.encode({"event": "end", "state": state} | _given(why=why), "event")
    yield from queries.append(run, "run", event, at=held.now, epoch=epoch, by=by, request=request)
    return {"run": run, "state": state}


def retry(run: str, by: str, request: str, why: str | None) -> Transaction[Json]:
    """A run that failed, or whose workers died at it, is anybody's again: what is done stays done, what failed may run
    again."""
    held = yield from queries.held(run)
    kept = yield from queries.run(run)
    if (yield from queries.appended(run, request)):
        return {"run": run, "state": kept.state}
    if kept.state != "failed" and kept.parked is None:
        raise HoldfastError("conflict", f"the run is {kept.state}, not failed", "only what failed is tried again")
    later = yield Query("SELECT 1 FROM attempt WHERE task = ? AND n > ? LIMIT 1", (held.task, held.n))
    if later:
        raise HoldfastError("conflict", "its task has a later attempt", "hold work ls --task ID; retry that one")
    yield Query(
        "UPDATE run SET state = 'active', ended_at = NULL, outcome = NULL, waits_for = NULL, parked = NULL, crashes = 0"
        " WHERE id = ?",
        (run,),
    )
    yield Query("UPDATE attempt SET ended_at = NULL, outcome = NULL, lease_until = 0 WHERE id = ?", (held.attempt,))
    event = {"event": "retry", "failed_with": json_values.decode(kept.outcome or kept.parked)} | _given(why=why)
    text = json_values.encode(event, "event")
    yield from queries.append(run, "run", text, at=held.now, epoch=held.epoch, by=by, request=request)
    return {"run": run, "state": "active"}


def status(run: str) -> Transaction[Json]:
    kept = yield from queries.run(run)
    held = yield from queries.seen(run)
    rows = yield Query("SELECT key, state, outcome FROM step WHERE run = ? ORDER BY begun_at, key", (run,))
    doubts = yield from queries.steps(run, "in_doubt")
    logged = yield Query("SELECT COALESCE(MAX(seq), 0) FROM log WHERE run = ?", (run,))
    used = yield Query(
        "SELECT session, generation, from_offset FROM run_session WHERE run = ? ORDER BY at, session, generation",
        (run,),
    )
    sessions = [{"session": s, "generation": g, "from_offset": o} for s, g, o in used]
    told = describe(kept, held, [(k, s, o) for k, s, o in rows], doubts, logged[0][0])
    parked = park_report(kept, [s.key for s in doubts])
    state = "parked" if parked is not None else kept.state
    return {
        **told,
        "state": state,
        "job": kept.job,
        "waits_for": kept.waits_for,
        "crashes": kept.crashes,
        "parked": parked,
        "sessions": sessions,
    }


def park_report(kept: Run, doubts: list[str]) -> Json | None:
    """Why no worker takes an active run, and what a person is to do; None where one may. `PARKED` as a function."""
    if kept.state != "active":
        return None
    if kept.parked is not None:
        how = f"find out why its workers died, then: hold work retry {kept.id}"
        return {**json_values.decode(kept.parked), "hint": how}
    if kept.waits_for is None or kept.waits_for not in doubts:
        return None
    how = f"find out what happened, then: hold step settle {kept.id} {kept.waits_for} --done|--not-done --evidence TEXT"
    return {"reason": "in_doubt", "job": kept.job, "step": kept.waits_for, "hint": how}


def describe(kept: Run, held: Held, rows: list[tuple[str, str, str | None]], doubts: list[Step], seq: int) -> Json:
    counts = {"done": 0, "open": 0, "failed": 0, "in_doubt": 0}
    states = {key: standing(state, outcome) for key, state, outcome in rows}
    for state in states.values():
        counts[state] = counts.get(state, 0) + 1
    items = json_values.decode(kept.items)
    return {
        "run": kept.id,
        "task": kept.task,
        "attempt": kept.attempt,
        "n": held.n,
        "state": kept.state,
        "params": json_values.decode(kept.params),
        "parent": kept.parent,
        "forked_from": kept.forked_from,
        "worker": held.worker,
        "epoch": held.epoch,
        "lease_until": _time(held.lease_until),
        "leased": lease.alive(held),
        "created_at": _time(kept.created_at),
        "ended_at": _time(kept.ended_at),
        "outcome": json_values.decode(kept.outcome),
        "steps": counts,
        "log_end": seq,
        "items": None if items is None else sort_items(items, states),
        "in_doubt": [report.report(s, held.now) for s in doubts],
        "observed_at": _time(held.now),
    }


def standing(state: str, outcome: str | None) -> str:
    """done | open | failed | in_doubt | pending"""
    if state == "settled":
        return "done" if outcome == "done" else "pending"
    return state


def sort_items(items: list[str], states: dict[str, str]) -> dict[str, Any]:
    """An item's steps are those whose key is the item, or ends in `:ITEM`. It is done when all of them are."""
    of: dict[str, set[str]] = {item: set() for item in items}
    for key, state in states.items():
        # Items may hold colons themselves, so every tail of the key is tried.
        at = 0
        while key[at:] not in of and (at := key.find(":", at) + 1):
            pass
        if key[at:] in of:
            of[key[at:]].add(state)
    sorted_: dict[str, Any] = {"total": len(items), "done": [], "in_doubt": [], "failed": [], "pending": []}
    for item, seen in of.items():
        worst = next((s for s in ("in_doubt", "failed") if s in seen), None)
        sorted_[worst or ("done" if seen == {"done"} else "pending")].append(item)
    return sorted_


def listing(task: str | None, state: str | None, limit: int, job: str | None = None) -> Transaction[list[Json]]:
    where, args = [], []
    for column, value in (("a.task", task), (_SHOWN, state), ("r.job", job)):
        if value is not None:
            where.append(f"{column} = ?")
            args.append(value)
    rows = yield Query(
        f"SELECT r.id, a.task, {_SHOWN}, a.n, a.worker, a.epoch, a.lease_until, r.created_at, r.ended_at, r.job"
        " FROM run r JOIN attempt a ON a.id = r.attempt"
        + (" WHERE " + " AND ".join(where) if where else "")
        + " ORDER BY r.created_at DESC, r.id LIMIT ?",
        (*args, limit),
    )
    names = ("run", "task", "state", "n", "worker", "epoch")
    return [
        dict(zip(names, row, strict=False))
        | {"lease_until": _time(row[6]), "created_at": _time(row[7]), "ended_at": _time(row[8]), "job": row[9]}
        for row in rows
    ]


def whole(run: str) -> bool:
    """Whether this is all of a run's id, and not the beginning of one, as people type it."""
    return len(check_word("a run", run)) >= _ID_LENGTH


def resolve(wanted: str) -> Transaction[str]:
    """A run by its id or an unambiguous beginning of it."""
    prefix = wanted if wanted.startswith("run_") else "run_" + wanted
    rows = yield Query("SELECT id FROM run WHERE substr(id, 1, ?) = ? LIMIT 2", (len(prefix), prefix))
    if len(rows) == 1:
        return str(rows[0][0])
    what = f"{wanted[:80]!r} begins several run ids" if rows else f"no run {wanted[:80]!r}"
    raise not_found(what, "give more letters" if rows else "begin one first")


_SHOWN = f"CASE WHEN r.state = 'active' AND {PARKED} THEN 'parked' ELSE r.state END"


def parked(limit: int) -> Transaction[list[Json]]:
    """The runs of jobs that wait for a person, oldest first, with why and what to do."""
    rows = yield Query(
        f"SELECT r.id FROM run r WHERE r.state = 'active' AND r.job IS NOT NULL AND {PARKED}"
        " ORDER BY r.created_at, r.id LIMIT ?",
        (limit,),
    )
    found: list[Json] = []
    for (run,) in rows:
        kept = yield from queries.run(run)
        doubts = yield from queries.steps(run, "in_doubt")
        report = park_report(kept, [s.key for s in doubts])
        if report is not None:  # else it came free in this moment
            found.append({"run": run, "task": kept.task, **report})
    return found


def _given(**facts: str | None) -> Json:
    return {name: value for name, value in facts.items() if value}


def _time(micros: int | None) -> str | None:
    return rfc3339(micros / 1e6) if micros else None
