"""Schedules polls of sessions that sent no change notice. Pure: the clock is an argument.

The host notifies of changes to a session, but not of a program that begins to wait or to listen: the kernel has no
event for either. So a session that is not idle is polled, less often the longer nothing changes.
"""

from __future__ import annotations

FIRST_S = 2.0  # after a change: as often as the inbox polls
MOST_S = 10.0  # the longest delay until a new port of a silent program is shown
ALL_S = 60.0  # then all are polled, to correct anything that was missed


class PollSchedule:
    """Which sessions are due, and when the next one is."""

    def __init__(self, now: float) -> None:
        self._due: dict[str, tuple[float, float]] = {}  # by session: when, and the pause before it
        self._all_due = now

    def saw(self, session: str, *, still: bool, changed: bool, now: float) -> None:
        """Record a poll: an idle session is not polled again, a changed one soon."""
        before = self._due.pop(session, None)
        if not still:
            pause = FIRST_S if changed or before is None else min(2 * before[1], MOST_S)
            self._due[session] = (now + pause, pause)

    def saw_all(self, now: float) -> None:
        self._all_due = now + ALL_S

    def gone(self, session: str) -> None:
        self._due.pop(session, None)

    def due(self, now: float) -> set[str] | None:
        """The sessions to poll; None is all of them."""
        if now >= self._all_due:
            return None
        return {session for session, (when, _) in self._due.items() if when <= now}

    def wait(self, now: float) -> float:
        """Seconds until the next session is due."""
        return max(0.0, min([self._all_due, *(when for when, _ in self._due.values())]) - now)
