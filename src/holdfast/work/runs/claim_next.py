"""How a worker comes to its run: the next one that is free, and the one that waits for a person is left alone."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.errors import HoldfastError
from ...store import queries
from ...store.base import Query, Transaction
from ...wire import json_values
from . import lease, rows
from .worker_process import Process

Json = dict[str, Any]
_TRIED_MAX = 8  # candidates of one look; what others took in this moment is skipped

_OF_JOBS = " FROM run r JOIN attempt a ON a.id = r.attempt WHERE r.state = 'active' AND a.ended_at IS NULL"
# Runs of these jobs that no person is asked about.
_WAITING = f"{_OF_JOBS} AND NOT {rows.PARKED} AND r.job IN ({{jobs}})"


class Claim(NamedTuple):
    """What a worker can do, and how patient it is."""

    jobs: tuple[str, ...]
    worker: str
    ttl: int  # microseconds
    standby: bool
    request: str
    process: Process | None = None


def claim(wanted: Claim) -> Transaction[Json]:
    """The oldest run that is free, leased to this worker; else when to look again.

    A standby leaves a new run to the others for as long as a lease: after that there is none. What a worker left, by
    death or by giving it back, is anybody's at once.
    """
    marks = ", ".join("?" * len(wanted.jobs))
    waiting = _WAITING.replace("{jobs}", marks)
    patience = wanted.ttl if wanted.standby else 0
    found = yield Query(
        "SELECT r.id" + waiting + " AND (a.lease_until <= {now} OR a.instance = ?)"
        " AND (a.epoch > 0 OR r.created_at + ? <= {now}) ORDER BY r.created_at, r.id LIMIT ?",
        (*wanted.jobs, wanted.process.id if wanted.process else "", patience, _TRIED_MAX),
    )
    for (run,) in found:
        held = yield from queries.held(run)
        kept = yield from queries.run(run)
        ours = wanted.process is not None and lease.same(held, wanted.worker, wanted.process)
        if kept.ended_at is None and kept.parked is None and (not lease.alive(held) or ours):
            yield from lease.grant(run, held, wanted.worker, wanted.ttl, wanted.request, wanted.process)
            yield from _hold(run, held.epoch + 1, wanted)
            yield Query("UPDATE run SET waits_for = NULL WHERE id = ?", (run,))
            return (yield from rows.answer(run, resumed=held.epoch > 0)) | {"before": held.worker}
    ahead = yield Query(
        "SELECT COUNT(*), MIN(CASE WHEN a.epoch > 0 THEN a.lease_until ELSE r.created_at + ? END) - {now}" + waiting,
        (patience, *wanted.jobs),
    )
    active, left = ahead[0]
    parked = yield Query(f"SELECT COUNT(*){_OF_JOBS} AND {rows.PARKED} AND r.job IN ({marks})", wanted.jobs)
    return {
        "run": None,
        "active": int(active),
        "parked": int(parked[0][0]),
        "next_in_s": None if left is None else max(0.0, int(left) / 1e6),
    }


def _hold(run: str, epoch: int, wanted: Claim) -> Transaction[None]:
    """Who is at it now, for those who look whether it still lives (crashes.py)."""
    process = wanted.process
    if process is not None and process.place:
        yield Query(
            "INSERT INTO holding (run, epoch, worker, instance, place, pid, started) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (run, epoch, wanted.worker, *process),
        )


def leaves(run: str, epoch: int) -> Transaction[None]:
    """Whoever holds it under this epoch was asked to leave, or has: however that ends, it is no crash."""
    held = yield from queries.held(run)
    gone = yield Query("DELETE FROM holding WHERE run = ? AND epoch = ? RETURNING worker", (run, epoch))
    for (worker,) in gone:
        event = json_values.encode({"event": "leaving", "worker": worker}, "event")
        yield from queries.append(run, "run", event, at=held.now, epoch=epoch, by=worker)


def park(run: str, epoch: int, key: str, by: str) -> Transaction[Json]:
    """Give the run back until this step is settled: another worker could do no more about it."""
    held = yield from queries.held(run)
    kept = yield from queries.run(run)
    answer = {"run": run, "waits_for": key}
    if held.epoch == epoch and held.lease_until == 0 and kept.waits_for == key:
        return answer  # said before, and the answer was lost
    lease.check(held, epoch)
    step = yield from queries.step(run, key)
    if step is None or step.state not in ("open", "in_doubt"):
        raise HoldfastError("conflict", f"step {key!r} is not in doubt", "there is nothing to wait for")
    yield from lease.doubt(run, held)
    yield Query("UPDATE run SET waits_for = ? WHERE id = ?", (key, run))
    yield from lease.release(run, epoch)
    event = json_values.encode({"event": "parked", "worker": held.worker, "waits_for": key}, "event")
    yield from queries.append(run, "run", event, at=held.now, epoch=epoch, by=by, step=key)
    return answer
