"""Workers that died at a run: seen on their machine, counted in the store, and after a few the run is parked.

Whoever looks for work looks after the processes of its own machine first. One that is gone without having given its run
back has crashed: its lease ends now, and the run counts it. Given back (SIGTERM, the end of the job, a fenced worker
that leaves) is no crash, nor is one that ended because its store was away (worker/jobs/left_marks.py). One whose
machine was lost or booted anew cannot be looked at and is not counted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...model.times import rfc3339
from ...store import queries
from ...store.base import Held, Query, Run, Transaction
from ...wire import json_values
from . import lease

Json = dict[str, Any]
_HOLDERS_MAX = 100  # of one look: more processes than that do not work on one machine
_SHOWN_MAX = 20  # crashes named in a report: the last ones


class Holder(NamedTuple):
    """A process that was given a run, and has not said since that it left it."""

    run: str
    epoch: int
    worker: str
    pid: int
    started: int
    job: str
    process: str
    leased: bool  # its lease is still the run's


def holders(jobs: tuple[str, ...], place: str) -> Transaction[list[Holder]]:
    """Those of one place that work, or worked, at runs of these jobs."""
    rows = yield Query(
        "SELECT h.run, h.epoch, h.worker, h.pid, h.started, r.job, h.instance,"
        " a.epoch = h.epoch AND a.lease_until > {now}"
        " FROM holding h JOIN run r ON r.id = h.run JOIN attempt a ON a.id = r.attempt"
        f" WHERE h.place = ? AND r.state = 'active' AND r.job IN ({', '.join('?' * len(jobs))})"
        " ORDER BY h.run, h.epoch LIMIT ?",
        (place, *jobs, _HOLDERS_MAX),
    )
    return [Holder(*row)._replace(leased=bool(row[-1])) for row in rows]


def looked_at(holder: Holder, gone: bool, most: int) -> Transaction[None]:
    """What becomes of a holder that was looked at: gone, it crashed; there without its lease, it does not count."""
    if not gone and holder.leased:
        return
    held = yield from queries.held(holder.run)
    kept = yield from queries.run(holder.run)
    known = yield Query("DELETE FROM holding WHERE run = ? AND epoch = ? RETURNING epoch", (holder.run, holder.epoch))
    if not known or not gone or kept.ended_at is not None:
        return  # it was counted before, or it left in this moment, or it was only too slow
    yield Query("UPDATE run SET crashes = crashes + 1 WHERE id = ?", (holder.run,))
    doubted: list[str] = []
    if held.epoch == holder.epoch:  # nobody took over yet
        yield Query("UPDATE attempt SET lease_until = 0 WHERE id = ?", (held.attempt,))
        doubted = yield from lease.doubt(holder.run, held)
    event = {"event": "crash", "worker": holder.worker, "crashes": kept.crashes + 1, "in_doubt": doubted}
    text = json_values.encode(event, "event")
    yield from queries.append(holder.run, "run", text, at=held.now, epoch=holder.epoch, by=holder.worker)
    if kept.crashes + 1 >= most and (held.epoch == holder.epoch or not lease.alive(held)):
        yield from _park(kept, held, most)


def _park(kept: Run, held: Held, most: int) -> Transaction[None]:
    """No worker takes it any more, until somebody has looked and had it tried again."""
    rows = yield Query(
        "SELECT at, epoch, body FROM log WHERE run = ? AND kind = 'run' AND body LIKE '%\"event\":\"crash\"%'"
        " ORDER BY seq DESC LIMIT ?",
        (kept.id, min(kept.crashes + 1, _SHOWN_MAX)),
    )
    crashes = [
        {"at": rfc3339(at / 1e6), "epoch": epoch} | {k: v for k, v in json_values.decode(body).items() if k != "event"}
        for at, epoch, body in reversed(rows)
    ]
    last = yield Query(
        "SELECT key FROM step WHERE run = ? AND ended_at IS NOT NULL ORDER BY ended_at DESC, key LIMIT 1", (kept.id,)
    )
    report = {
        "reason": "crashes",
        "job": kept.job,
        "count": kept.crashes + 1,
        "max_crashes": most,
        "at": rfc3339(held.now / 1e6),
        "crashes": crashes,
        "last_step": last[0][0] if last else None,
    }
    yield Query("UPDATE run SET parked = ? WHERE id = ?", (json_values.encode(report, "the report"), kept.id))
    event = json_values.encode({"event": "parked", "crashes": kept.crashes + 1, "max_crashes": most}, "event")
    yield from queries.append(kept.id, "run", event, at=held.now, epoch=held.epoch, by="holdfast")
