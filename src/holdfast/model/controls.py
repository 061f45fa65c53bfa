"""The controls: who may type, resize and signal. One holder, numbered by epoch. Everything that changes them is here.

    free --take--> held(epoch+1) --release, last hold gone--> free
    held(A) --take with force, allowed by rank--> held(B, epoch+1)

A human preempts an agent or a service; those never preempt a human. A hold has one or more reasons (`holds`):
an attached client's channel, an explicit take, an action under way. When the last is gone the controls are free.
"""

from __future__ import annotations

_RANK = {"human": 2, "agent": 1, "service": 1}


class Actor:
    """Who acts: an operator's id, kind and name, as the host vouched for it."""

    __slots__ = ("kind", "name", "operator")

    def __init__(self, operator: str, kind: str, name: str) -> None:
        self.operator, self.kind, self.name = operator, kind, name


class Refused(Exception):
    """Someone else holds the controls, or the epoch is old."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class Controls:
    """The state and its transitions; `reserve` must make an epoch durable before it is used."""

    __slots__ = ("epoch", "holder", "holds", "since")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.holder: Actor | None = None
        self.since = 0.0
        self.holds: set[str] = set()

    def check(self, actor: Actor, epoch: int = 0) -> None:
        """Raise unless `actor` holds the controls now (under `epoch`, when one is given)."""
        if epoch and epoch != self.epoch:
            raise Refused(
                "stale_epoch", f"epoch {epoch} is over, the controls are at {self.epoch}", self._hint()
            )
        if self.holder is None or self.holder.operator != actor.operator:
            raise self._conflict()

    def needs_grant(self, actor: Actor, force: bool = False) -> bool:
        """Whether taking means a new epoch. Raises when it is not allowed at all."""
        if self.holder is None:
            return True
        if self.holder.operator == actor.operator:
            return False
        if not force or _RANK.get(actor.kind, 0) < _RANK.get(self.holder.kind, 2):
            raise self._conflict()
        return True

    def grant(self, actor: Actor, hold: str, now: float) -> None:
        """Give the controls to `actor`; the new epoch has been made durable by the caller."""
        self.epoch += 1
        self.holder, self.since = actor, now
        self.holds = {hold}

    def join(self, hold: str) -> None:
        self.holds.add(hold)

    def drop(self, hold: str) -> bool:
        """Remove one reason; true when the controls became free."""
        self.holds.discard(hold)
        if self.holds or self.holder is None:
            return False
        self.holder = None
        return True

    def free(self) -> None:
        self.holder, self.holds = None, set()

    def _conflict(self) -> Refused:
        holder = self.holder
        who = f"{holder.name} ({holder.kind})" if holder else "nobody"
        return Refused("conflict", f"{who} holds the controls (epoch {self.epoch})", self._hint())

    @staticmethod
    def _hint() -> str:
        return "watch with attach -r, or take them: hold take SESSION"

    def as_dict(self) -> dict[str, object]:
        h = self.holder
        return {
            "holder": h.operator if h else None,
            "kind": h.kind if h else None,
            "name": h.name if h else None,
            "epoch": self.epoch,
            "since": self.since if h else None,
        }
