"""Waits for what comes on a socket: awake where it comes soon, asleep where it does not.

Whoever sleeps is woken late, and finds the processor's caches cold: between two parties that answer each other within
half a millisecond that was a fifth of the time. So where the answers have been coming soon, one looks for them a moment
long before going to sleep, and offers the processor to others after every look. The first sign that somebody else took
it, or a moment in vain, and the next waits are slept through.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

FLUSHED_S = 1.5e-3  # whoever is beside us and writes a step has flushed it within this time, where the disk is quick
_TAKEN_S = 1e-3  # the other party may need this processor itself, for less; who keeps it longer is somebody else
# Waits to be slept through then: twice as many each time, and one less with each that was worth it, so that answers
# which are quick and slow in turn cost no more than a little.
_SLEPT, _SLEPT_MAX = 4, 256


class Arrival:
    """`wait` for one socket. `awake_s` is how long to look out for what comes before sleeping."""

    __slots__ = ("_asleep", "_awake_s", "_poll", "_slept")

    def __init__(self, sock: socket.socket, awake_s: float) -> None:
        # Not in `recv`: whoever waits there is also woken when the other side has read what was sent, for nothing.
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._awake_s = awake_s
        self._asleep, self._slept = 0, _SLEPT  # how many waits are to be slept through; and after the next vain one

    def wait(self, limit_s: float | None = None) -> bool:
        """Until something came, the other side has left, or the time is over (False)."""
        return bool(self._poll.poll(None if limit_s is None else limit_s * 1000))

    def wait_soon(self, limit_s: float | None = None) -> bool:
        """`wait`, for what is likely to come soon."""
        if self._asleep:
            self._asleep -= 1
        elif self._came():
            return True
        return self.wait(limit_s)

    def _came(self) -> bool:
        look, offer, clock = self._poll.poll, os.sched_yield, time.perf_counter
        before = clock()
        until = before + self._awake_s
        while not look(0):
            offer()
            now = clock()
            if now > until or now - before > _TAKEN_S:
                self._asleep, self._slept = self._slept, min(2 * self._slept, _SLEPT_MAX)
                return False
            before = now
        self._slept = max(_SLEPT, self._slept - 1)
        return True
