"""Who may write: the pure rules of the lease. The row is locked and the clock is the database's (`Held.now`)."""

from __future__ import annotations

from ..model.work import Fenced
from ..store.base import Held


def check(held: Held, epoch: int) -> None:
    """Every write of a worker begins with this. An expired lease cannot write even when nobody took over."""
    if held.ended_at is not None:
        raise Fenced("the run has ended", "begin another one")
    if epoch != held.epoch:
        raise Fenced(f"epoch {epoch} was taken over: {held.worker} writes under epoch {held.epoch}")
    if held.now >= held.lease_until:
        late = (held.now - held.lease_until) / 1e6
        raise Fenced(f"the lease of epoch {epoch} ran out {late:.1f} s ago", "take the run over again, then go on")


def free(held: Held) -> bool:
    """Whether another worker may take over."""
    return held.now >= held.lease_until
