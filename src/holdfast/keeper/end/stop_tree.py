"""Ending a whole tree: TERM, then KILL after the grace time, again and again until nothing is left."""

from __future__ import annotations

import os
import signal

_AGAIN_S = 0.05  # between two rounds of KILL: a tree that forks while dying is caught in the next


class Stopping:
    """A stop under way. `due` is when the next step is; SIGCHLD tells the keeper of each death in between."""

    __slots__ = ("_kill_at", "due", "main")

    def __init__(self, main: int, grace_s: float, now: float) -> None:
        self.main = main
        self._kill_at = now + grace_s
        self.due = 0.0

    def begin(self, members: list[int], now: float) -> None:
        for pid in members:
            send(pid, signal.SIGTERM)
        # An interactive shell ignores TERM; HUP is what a closing terminal tells it.
        send(self.main, signal.SIGHUP)
        for pid in members:
            send(pid, signal.SIGCONT)  # a stopped process hears TERM only when it runs
        self.due = self._kill_at
        if self._kill_at <= now:
            self.step(members, now)

    def step(self, members: list[int], now: float) -> None:
        """The grace time is over: freeze first, so that none can fork away, then kill."""
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in members:
                send(pid, number)
        self.due = now + _AGAIN_S


def send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
