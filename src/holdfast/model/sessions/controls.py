"""The controls: who may type, resize and signal. One holder, numbered by epoch. Everything that changes them is here.

    state       event                                     next                what the keeper owes
    free        anyone takes, types or acts               held, epoch + 1     the epoch on disk first
    held by A   A takes, types or acts                    held                one more hold; the lease runs anew
    held by A   B takes with force, not of lower rank     held by B, + 1      A's unread input discarded, A told
                (a human from a human: B insists)
    held by A   A hands to B                              held by B, + 1      the same
    held by A   B does anything else                      held by A           B told who holds them, and since when
    held by A   A releases; the last hold ends            free
    held by A   A's client leaves, A took them from B     held by B, + 1      as when A hands them to B
    held by A   A took over and is away                   held                A warned, once; it is recorded

A hold is a reason to have the controls: an attached client's channel, a takeover, an action under way. When each of
them ends says `holds`. Time is passed in and is monotonic; `since` and `ends_at` are for people.
"""

from __future__ import annotations

from ..limits import HOLDS_MAX
from . import hold_end
from .hold_end import Hold, Times

KINDS = ("human", "agent", "service")
_RANK = {"human": 2, "agent": 1, "service": 1}

TAKEN = "taken"  # the name of a takeover's hold
ACTION = "action"  # the hold of an act that takes free controls for its duration


class Actor:
    """Who acts: an operator's id, kind and name, as the host vouched for it, and which of its client processes
    (`actor`; empty where that is not known). The controls are the operator's, whichever of them acts."""

    __slots__ = ("actor", "kind", "name", "operator")

    def __init__(self, operator: str, kind: str, name: str, actor: str = "") -> None:
        self.operator, self.kind, self.name, self.actor = operator, kind, name, actor

    def as_dict(self) -> dict[str, str]:
        return {"operator": self.operator, "kind": self.kind, "name": self.name}


class Refused(Exception):
    """Someone else holds the controls, the epoch is old, or there is no room."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


class Controls:
    """The state and its transitions; the caller makes an epoch durable before it is granted."""

    __slots__ = ("acted_at", "ends_at", "epoch", "holder", "holds", "origin", "origin_process", "since", "times")

    def __init__(self, epoch: int, times: Times | None = None) -> None:
        self.epoch, self.times = epoch, times or Times()
        self.holder: Actor | None = None
        self.since = self.acted_at = 0.0
        self.holds: dict[str, Hold] = {}
        self.origin: Actor | None = None  # whom the holder has them from, and gives them back to
        self.origin_process = 0
        self.ends_at = 0.0  # the time of day at which a takeover ends whose person is away; 0: they are not

    # -- questions

    def held_by(self, actor: Actor) -> bool:
        return self.holder is not None and self.holder.operator == actor.operator

    def check(self, actor: Actor, epoch: int = 0) -> None:
        """Raise unless `actor` holds the controls now (under `epoch`, when one is given)."""
        if epoch and epoch != self.epoch:
            raise Refused("stale_epoch", f"epoch {epoch} is over: {self.who()}", self._hint())
        if not self.held_by(actor):
            raise self.conflict()

    def needs_grant(self, actor: Actor, force: bool = False, insist: bool = False) -> bool:
        """Whether taking means a new epoch. Raises when it is not allowed at all. A human is asked by a human first:
        only who insists takes from them."""
        if self.holder is None:
            return True
        if self.holder.operator == actor.operator:
            return False
        if not force or _RANK.get(actor.kind, 0) < _RANK.get(self.holder.kind, 2):
            raise self.conflict()
        if self.holder.kind == "human" and not insist:
            raise Refused("conflict", self.who(), "ask for them: hold take SESSION; --force takes them unasked")
        return True

    @property
    def there(self) -> bool:
        """Whether a client of the holder is connected that holds them."""
        return any(hold.there for hold in self.holds.values())

    @property
    def _human(self) -> bool:
        return self.holder is not None and self.holder.kind == "human"

    def _end(self, hold: Hold) -> float:
        return hold_end.end(self._human, hold, self.acted_at, self.there, self.times)

    def _away_due(self) -> float:
        """When to warn that a takeover's person is away; 0 when they are not, or were warned."""
        if not self._human or TAKEN not in self.holds or self.ends_at or self.there:
            return 0.0
        return self.acted_at + min(self.times.grace_s, self.times.takeover_s / 2)

    def due(self) -> float:
        """When something is to be done by itself; 0 when there is nothing."""
        if self.holder is None:  # asked in every turn of a keeper's loop
            return 0.0
        if self._human and len(self.holds) == 1 and self.there:  # and while somebody types
            return 0.0
        return min(filter(None, (*map(self._end, self.holds.values()), self._away_due())), default=0.0)

    # -- transitions

    def grant(self, actor: Actor, name: str, hold: Hold, now: float, since: float) -> None:
        """Give the controls to `actor`; the new epoch has been made durable by the caller."""
        self.epoch += 1
        self.holder, self.since, self.acted_at = actor, since, now
        self.holds = {name: hold}
        self.origin, self.origin_process, self.ends_at = None, 0, 0.0

    def owe(self, origin: Actor | None, process: int) -> None:
        """Whom the controls that were granted just now go back to."""
        self.origin, self.origin_process = origin, process

    def join(self, name: str, hold: Hold, now: float) -> None:
        """The holder acts again: one more reason, and its time runs anew."""
        self.acted_at = now
        if name not in self.holds and len(self.holds) >= HOLDS_MAX:
            raise Refused("busy", f"the controls are held for {HOLDS_MAX} reasons already", "end some commands first")
        if hold.kind in (hold_end.TYPED, hold_end.TAKEN):  # the human is back
            self.holds = {n: h for n, h in self.holds.items() if not h.lost_at}
            self.ends_at = 0.0
        self.holds[name] = hold
        taken = self.holds.get(TAKEN)
        if hold.kind == hold_end.TYPED and taken is not None and taken.client:
            taken.client = hold.client  # another client of the same person: it moves

    def drop(self, name: str) -> bool:
        """Remove one reason; true when the controls became free."""
        if self.holds.pop(name, None) is None or self.holds:
            return False
        self.free()
        return True

    def leave(self, name: str, client: str, now: float, *, keep: bool = False) -> str:
        """A client says that it leaves. ENDS where the controls are free now, BACK where they go to `origin`."""
        human = self._human
        if self.holds.pop(name, None) is not None:
            self.acted_at = now
        taken = self.holds.get(TAKEN)
        if taken is not None and taken.client == client and client:
            other = next((hold.client for hold in self.holds.values() if hold.there), "")
            if keep or other:
                taken.client = other
            else:
                del self.holds[TAKEN]
                if hold_end.outcome(human, taken, hold_end.LEAVES) == hold_end.BACK and self.origin and not self.holds:
                    return hold_end.BACK
        if self.holder is None or self.holds:
            return hold_end.STAYS
        self.free()
        return hold_end.ENDS

    def lost(self, name: str, now: float) -> bool:
        """A line was lost without a word; true when the controls became free."""
        hold = self.holds.get(name)
        if hold is None:
            return False
        does = hold_end.outcome(self._human, hold, hold_end.LOST)
        if does == hold_end.GRACE and len(self.holds) == 1:
            hold.lost_at = now
        elif does != hold_end.STAYS:  # something else keeps the controls: a takeover, a window, a command
            self.acted_at = max(self.acted_at, now if TAKEN in self.holds else 0.0)
            return self.drop(name)
        return False

    def gone(self, process: int) -> bool:
        """A process ended that was watched; true when the controls became free. It gets nothing back, either."""
        if self.origin_process == process:
            self.origin, self.origin_process = None, 0
        ended = [
            name
            for name, hold in self.holds.items()
            if hold.process == process and hold_end.outcome(self._human, hold, hold_end.GONE) == hold_end.ENDS
        ]
        return any(self.drop(name) for name in ended)

    def lapse(self, now: float) -> bool:
        """Remove the holds whose time is over; true when the controls became free."""
        over = [name for name, hold in self.holds.items() if 0 < self._end(hold) <= now]
        return any(self.drop(name) for name in over)

    def away(self, now: float, clock: float) -> bool:
        """Whether the person who took over is to be warned now; `clock` is the time of day."""
        due = self._away_due()
        if not 0 < due <= now:
            return False
        self.ends_at = clock + self._end(self.holds[TAKEN]) - now
        return True

    def free(self) -> None:
        self.holder, self.holds, self.ends_at = None, {}, 0.0
        self.origin, self.origin_process = None, 0

    def processes(self) -> set[int]:
        """Those that are to be watched."""
        return {hold.process for hold in self.holds.values()} | {self.origin_process}

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
            "from": self.origin.as_dict() if self.origin else None,
            "ends_at": self.ends_at or None,
            "deliberate": TAKEN in self.holds,
        }


def _clock(seconds: float) -> str:
    """The time of day in UTC, by hand: the keeper does without datetime."""
    minutes, second = divmod(int(seconds) % 86400, 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{second:02d} UTC"
