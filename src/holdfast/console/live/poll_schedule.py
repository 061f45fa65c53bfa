"""When to look at a session again that nobody has heard of. Pure: the clock is an argument.

What happens to a session is told by the host. A program that begins to wait, or to listen, is not: the kernel has no
event for either. So whatever is not at rest is looked at now and then, less often the longer nothing changes.
"""

from __future__ import annotations

FIRST_S = 2.0  # after something happened: as often as the inbox looks
MOST_S = 10.0  # how late it may be told that a silent program has opened a port
ALL_S = 60.0  # then all are looked at: whatever went unnoticed for some reason is put right


class PollSchedule:
    """Which sessions are due, and how long until the next is."""

    def __init__(self, now: float) -> None:
        self._due: dict[str, tuple[float, float]] = {}  # by session: when, and the pause before it
        self._all_due = now

    def saw(self, session: str, *, still: bool, changed: bool, now: float) -> None:
        """A look at one: at rest it is not looked at again, and one that changed is looked at soon."""
        before = self._due.pop(session, None)
        if not still:
            pause = FIRST_S if changed or before is None else min(2 * before[1], MOST_S)
            self._due[session] = (now + pause, pause)

    def saw_all(self, now: float) -> None:
        self._all_due = now + ALL_S

    def gone(self, session: str) -> None:
        self._due.pop(session, None)

    def due(self, now: float) -> set[str] | None:
        """Those to be looked at; None is all of them."""
        if now >= self._all_due:
            return None
        return {session for session, (when, _) in self._due.items() if when <= now}

    def wait(self, now: float) -> float:
        """How long until somebody is due."""
        return max(0.0, min([self._all_due, *(when for when, _ in self._due.values())]) - now)
