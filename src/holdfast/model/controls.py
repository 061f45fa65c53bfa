"""The controls: who may type, resize and signal. One holder, numbered by epoch. Everything that changes them is here.

    state       event                                     next                what the keeper owes
    free        anyone takes, types or acts               held, epoch + 1     the epoch on disk first
    held by A   A takes, types or acts                    held                one more hold; the lease runs anew
    held by A   B takes with force, not of lower rank     held by B, + 1      A's unread input discarded, A told
    held by A   A hands to B                              held by B, + 1      the same
    held by A   B does anything else                      held by A           B told who holds them, and since when
    held by A   A releases; the last hold is dropped      free
    held by A   A's last line is lost, A is a human       held for the grace  then it lapses
    held by A   lease or grace is over                    free                an agent's unread input discarded

A hold is a reason to have the controls: an attached client's channel, an explicit take, an action under way. The last
one gone, they are free. An agent's or a service's hold is a lease, counted from its last act: a process that hangs
does not say so. A human may think for as long as it takes. Time is passed in and is monotonic; `since` is for people.
"""

from __future__ import annotations

from .limits import GRACE_S, HOLDS_MAX, LEASE_S

KINDS = ("human", "agent", "service")
_RANK = {"human": 2, "agent": 1, "service": 1}

# How long a hold lasts, when that is not a moment.
UNTIL_DROPPED = 0.0
LEASE = -1.0

TAKEN = "taken"  # the hold of an explicit take that no attached channel stands for
ACTION = "action"  # the hold of an act that takes free controls for its duration
VANISHED = "vanished"  # the hold of a human whose line was lost


class Actor:
    """Who acts: an operator's id, kind and name, as the host vouched for it."""

    __slots__ = ("kind", "name", "operator")

    def __init__(self, operator: str, kind: str, name: str) -> None:
        self.operator, self.kind, self.name = operator, kind, name

    def as_dict(self) -> dict[str, str]:
        return {"operator": self.operator, "kind": self.kind, "name": self.name}


class Refused(Exception):
    """Someone else holds the controls, the epoch is old, or there is no room."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class Controls:
    """The state and its transitions; the caller makes an epoch durable before it is granted."""

    __slots__ = ("acted_at", "epoch", "grace_s", "holder", "holds", "lease_s", "since")

    def __init__(self, epoch: int, lease_s: float = LEASE_S, grace_s: float = GRACE_S) -> None:
        self.epoch = epoch
        self.lease_s, self.grace_s = lease_s, grace_s
        self.holder: Actor | None = None
        self.since = self.acted_at = 0.0
        self.holds: dict[str, float] = {}  # reason -> the moment it lapses, UNTIL_DROPPED or LEASE

    # -- questions

    def held_by(self, actor: Actor) -> bool:
        return self.holder is not None and self.holder.operator == actor.operator

    def check(self, actor: Actor, epoch: int = 0) -> None:
        """Raise unless `actor` holds the controls now (under `epoch`, when one is given)."""
        if epoch and epoch != self.epoch:
            raise Refused("stale_epoch", f"epoch {epoch} is over: {self.who()}", self._hint())
        if not self.held_by(actor):
            raise self.conflict()

    def needs_grant(self, actor: Actor, force: bool = False) -> bool:
        """Whether taking means a new epoch. Raises when it is not allowed at all."""
        if self.holder is None:
            return True
        if self.holder.operator == actor.operator:
            return False
        if not force or _RANK.get(actor.kind, 0) < _RANK.get(self.holder.kind, 2):
            raise self.conflict()
        return True

    def due(self) -> float:
        """When the next hold lapses by itself; 0 when none does."""
        if self.holder is None or not any(self.holds.values()):
            return 0.0
        moments = [self.acted_at + self.lease_s if d < 0 else d for d in self.holds.values() if d]
        return min(moments)

    # -- transitions

    def grant(self, actor: Actor, hold: str, lasts: float, now: float, since: float) -> None:
        """Give the controls to `actor`; the new epoch has been made durable by the caller."""
        self.epoch += 1
        self.holder, self.since, self.acted_at = actor, since, now
        self.holds = {hold: lasts}

    def join(self, hold: str, lasts: float, now: float) -> None:
        """The holder acts again: one more reason, and its lease runs anew."""
        self.acted_at = now
        if hold not in self.holds and len(self.holds) >= HOLDS_MAX:
            raise Refused("busy", f"the controls are held for {HOLDS_MAX} reasons already", "end some commands first")
        self.holds[hold] = lasts
        if hold != ACTION:
            self.holds.pop(VANISHED, None)  # the human is back

    def drop(self, hold: str) -> bool:
        """Remove one reason; true when the controls became free."""
        if self.holds.pop(hold, None) is None or self.holds:
            return False
        self.holder = None
        return True

    def vanish(self, hold: str, now: float) -> bool:
        """A line was lost without a word. A human may come back within the grace time; true when they became free."""
        last = len(self.holds) == 1 and hold in self.holds
        if last and self.holder is not None and self.holder.kind == "human":
            self.holds = {VANISHED: now + self.grace_s}
            return False
        return self.drop(hold)

    def lapse(self, now: float) -> bool:
        """Remove the holds whose time is over; true when the controls became free."""
        lease_over = now >= self.acted_at + self.lease_s
        for hold, lasts in list(self.holds.items()):
            if lease_over if lasts < 0 else 0 < lasts <= now:
                del self.holds[hold]
        if self.holder is None or self.holds:
            return False
        self.holder = None
        return True

    def free(self) -> None:
        self.holder, self.holds = None, {}

    # -- words

    def who(self) -> str:
        h = self.holder
        if h is None:
            return f"nobody holds the controls (epoch {self.epoch})"
        return f"{h.name or h.operator} ({h.kind}) holds the controls since {_clock(self.since)} (epoch {self.epoch})"

    def conflict(self) -> Refused:
        return Refused("conflict", self.who(), self._hint())

    def _hint(self) -> str:
        if self.holder is None:
            return "take them: hold take SESSION"
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


def lasting(actor: Actor) -> float:
    """How long a hold of this operator lasts that is not tied to one action."""
    return UNTIL_DROPPED if actor.kind == "human" else LEASE


def _clock(seconds: float) -> str:
    """The time of day in UTC, by hand: the keeper does without datetime."""
    minutes, second = divmod(int(seconds) % 86400, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d} UTC"
