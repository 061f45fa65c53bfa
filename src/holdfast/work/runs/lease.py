"""Who may write: the rules of the lease, and the transactions that give, renew and release it.

The row is locked and the clock is the database's (`Held.now`), in the same transaction as the write that is checked.
"""

from __future__ import annotations

from ...model.errors import HoldfastError, invalid
from ...model.limits import LEASE_HELD_BY_HAND_S, RUN_LEASE_MAX_S, SETTLE_S
from ...model.times import rfc3339
from ...model.work.effects import Fenced
from ...store import queries
from ...store.base import Held, Query, Transaction
from ...wire import json_values
from .worker_process import Process

HAND = "hand:"  # a worker of this name has no heartbeat: a person or an agent between two commands


def alive(held: Held) -> bool:
    return held.worker is not None and held.ended_at is None and held.now < held.lease_until


def by_hand(worker: str | None) -> bool:
    return worker is not None and worker.startswith(HAND)


def check(held: Held, epoch: int) -> None:
    """Every write of a worker begins with this. An expired lease cannot write even when nobody took over."""
    if epoch != held.epoch:
        raise Fenced(f"epoch {epoch} was taken over: {held.worker or 'nobody'} is at epoch {held.epoch}")
    if held.ended_at is not None:
        raise Fenced("the run has ended", "begin another one")
    if held.now >= held.lease_until:
        late = (held.now - held.lease_until) / 1e6
        raise Fenced(f"the lease of epoch {epoch} ran out {late:.1f} s ago", "take the run over again, then go on")


def same(held: Held, worker: str | None, process: Process | None) -> bool:
    """Whether who asks is who holds it: the very process, whatever other process has its name. Only where neither says
    which process it is (commands, whose processes end at once) the name alone decides."""
    return held.worker == worker and held.instance == (process.id if process else None)


def may_take(held: Held, worker: str, process: Process | None = None) -> None:
    """A free or expired lease, one of the same worker, or, for a worker with a heartbeat, one that is held by hand."""
    if held.ended_at is not None:
        raise HoldfastError("conflict", "the run has ended", "begin another one")
    if alive(held) and not same(held, worker, process) and not (by_hand(held.worker) and not by_hand(worker)):
        raise HoldfastError(
            "busy",
            f"the run is held by {held.worker} under epoch {held.epoch}",
            f"its lease ends at {rfc3339(held.lease_until / 1e6)} unless it is renewed",
        )


def check_ttl(ttl_s: float) -> int:
    """In microseconds."""
    if not 0 < ttl_s <= RUN_LEASE_MAX_S:
        raise invalid(f"a lease lasts up to {RUN_LEASE_MAX_S:g} s, not {ttl_s:g}", "renew a shorter one")
    return int(ttl_s * 1e6)


def grant(
    run: str, held: Held, worker: str, ttl: int, request: str, process: Process | None = None
) -> Transaction[int]:
    """The next epoch is this worker's. What an older one left open is in doubt from the same moment on."""
    epoch, until = held.epoch + 1, held.now + ttl
    yield Query(
        "UPDATE attempt SET worker = ?, instance = ?, epoch = ?, lease_until = ?, request = ? WHERE id = ?",
        (worker, process.id if process else None, epoch, until, request, held.attempt),
    )
    doubted = yield from doubt(run, held)
    if doubted or (held.epoch and not (by_hand(worker) and by_hand(held.worker))):
        body = {"event": "takeover", "worker": worker, "epoch": epoch, "from": held.worker, "in_doubt": doubted}
        yield from queries.append(run, "run", json_values.encode(body, "event"), at=held.now, epoch=epoch, by=worker)
    return epoch


def doubt(run: str, held: Held, *, for_good: bool = False) -> Transaction[list[str]]:
    """What is open is in doubt from now on: its worker is gone. The keys of this run, to whose log the caller
    appends. `for_good`: no one is asked to settle it by a time."""
    doubted = yield Query(
        "UPDATE step SET state = 'in_doubt', doubt_since = ?, doubt_until = ?"
        " WHERE state = 'open' AND run IN (SELECT id FROM run WHERE attempt = ?) RETURNING run, key",
        (held.now, None if for_good else held.now + int(SETTLE_S * 1e6), held.attempt),
    )
    return [key for of, key in doubted if of == run]


def writer(run: str, held: Held, epoch: int | None, by: str, request: str) -> Transaction[int]:
    """The epoch to write under: the worker's own, checked; or, by hand, whatever lease there is for this operator."""
    if epoch is not None:
        check(held, epoch)
        return epoch
    worker = HAND + by
    ttl = int(LEASE_HELD_BY_HAND_S * 1e6)
    # Their lease, or one that ran out with nobody else there since (one that was given back or taken away is at 0).
    if held.worker == worker and held.ended_at is None and held.lease_until > 0:
        yield Query("UPDATE attempt SET lease_until = ? WHERE id = ?", (held.now + ttl, held.attempt))
        return held.epoch
    if held.ended_at is not None:
        raise Fenced("the run has ended", "begin another one")
    if alive(held):
        until = rfc3339(held.lease_until / 1e6)
        raise Fenced(f"the run is held by {held.worker} under epoch {held.epoch}", f"its lease ends at {until}")
    return (yield from grant(run, held, worker, ttl, request))


def let_go(held: Held) -> Transaction[None]:
    """A lease held by hand lasts while a step is open: between two commands nobody needs it."""
    yield Query(
        "UPDATE attempt SET lease_until = 0 WHERE id = ? AND NOT EXISTS"
        " (SELECT 1 FROM step s JOIN run r ON r.id = s.run WHERE r.attempt = ? AND s.state = 'open')",
        (held.attempt, held.attempt),
    )


def renew(run: str, epoch: int, ttl: int) -> Transaction[int]:
    held = yield from queries.held(run)
    check(held, epoch)
    yield Query("UPDATE attempt SET lease_until = ? WHERE id = ?", (held.now + ttl, held.attempt))
    return held.now + ttl


def holder() -> Transaction[str | None]:
    """Somebody who holds a lease now, whichever it is."""
    rows = yield Query("SELECT worker FROM attempt WHERE lease_until > {now} AND ended_at IS NULL LIMIT 1")
    return str(rows[0][0]) if rows else None


def release(run: str, epoch: int) -> Transaction[bool]:
    """Give it back; whether it was still ours. What is open stays open, and is in doubt when the next one comes."""
    held = yield from queries.held(run)
    yield Query("DELETE FROM holding WHERE run = ? AND epoch = ?", (run, epoch))  # it left by itself
    if held.epoch != epoch or not alive(held):
        return False
    yield Query("UPDATE attempt SET lease_until = 0 WHERE id = ?", (held.attempt,))
    return True
