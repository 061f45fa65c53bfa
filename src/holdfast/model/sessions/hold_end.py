"""When a hold on the controls ends: one table. Times are passed in, and monotonic.

    hold                                 client leaves  disconnected  process ends      by the clock
    an act or a command under way        -              -             an agent's: ends  -
    a text in several pieces             -              grace         an agent's: ends  -
    agent or service, process known      ends           stays         ends              -
    agent or service, none to watch      ends           stays         -                 lease since its last act
    human, by typing into free controls  ends           grace         -                 -
    human, by taking over                handed back    stays         -                 takeover_max, while away

A takeover is also over when it is released, handed on, or taken by a human. While the person has a connection, it
has no end; `hold take` alone has none, so nothing is handed back automatically. A reconnect ends the grace time.
"""

from __future__ import annotations

from ..limits import GRACE_S, LEASE_S, TAKEOVER_S

WORK, SENDING, TYPED, TAKEN = "work", "sending", "typed", "taken"  # the reason of a hold
LEAVES, LOST, GONE = "leaves", "lost", "gone"  # what happens to the holder
ENDS, STAYS, GRACE, BACK = "ends", "stays", "grace", "back"  # what that does to the hold

_TABLE = {  # (a human's, why): (its client leaves, its line is lost, its process ends)
    (True, WORK): (STAYS, STAYS, STAYS),
    (True, SENDING): (STAYS, GRACE, STAYS),
    (True, TYPED): (ENDS, GRACE, STAYS),
    (True, TAKEN): (BACK, STAYS, STAYS),
    (False, WORK): (STAYS, STAYS, ENDS),
    (False, SENDING): (STAYS, GRACE, ENDS),
    (False, TYPED): (ENDS, STAYS, ENDS),
    (False, TAKEN): (ENDS, STAYS, ENDS),
}
_COLUMNS = (LEAVES, LOST, GONE)


class Times:
    """Time limits: of an agent without a watched process, a lost connection, a takeover whose person is away."""

    __slots__ = ("grace_s", "lease_s", "takeover_s")

    def __init__(self, lease_s: float = LEASE_S, grace_s: float = GRACE_S, takeover_s: float = TAKEOVER_S) -> None:
        self.lease_s, self.grace_s, self.takeover_s = lease_s, grace_s, takeover_s


class Hold:
    """One reason to have the controls. `client` identifies its client, also after a reconnect.
    `process` is the pid that the keeper watches for it, 0 if there is none."""

    __slots__ = ("client", "kind", "lost_at", "process")

    def __init__(self, kind: str, client: str = "", process: int = 0) -> None:
        self.kind, self.client, self.process = kind, client, process
        self.lost_at = 0.0  # when its connection was lost, while the grace time runs

    @property
    def there(self) -> bool:
        """Whether its client is connected."""
        return self.kind == TYPED and not self.lost_at


def outcome(human: bool, hold: Hold, event: str) -> str:
    """What an event does to a hold."""
    return _TABLE[human, hold.kind][_COLUMNS.index(event)]


def end(human: bool, hold: Hold, acted_at: float, there: bool, times: Times) -> float:
    """The time at which a hold expires, 0 if it does not. `there`: whether the holder has a connection."""
    if hold.lost_at:
        return hold.lost_at + times.grace_s
    if hold.kind in (WORK, SENDING):
        return 0.0
    if human:
        return acted_at + times.takeover_s if hold.kind == TAKEN and not there else 0.0
    return 0.0 if hold.process else acted_at + times.lease_s
