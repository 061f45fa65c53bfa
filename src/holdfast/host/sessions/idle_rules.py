"""Since when a session is idle, by a clock that nobody sets: pure, moments and samples are passed in.

The keeper's times are times of day. A clock that is set forward by a day would make everything idle for a day, so they
only ever say how long before this look something moved, and never that it was before the look before it.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

_WARN_MAX_S = 60.0  # the warning comes a minute before the end, or a quarter of a short time


def warn_before_s(ttl_s: float) -> float:
    return float(min(_WARN_MAX_S, ttl_s / 4))


def may_be_idle(sample: Json, at_shell: bool, listening: bool) -> bool:
    """Nobody attached, nothing listening, a shell at its prompt (an agent at its own still knows its conversation)."""
    return not sample["attached"] and not listening and at_shell


class Idleness:
    """One session's. `moment` is monotonic, `now` the time of day."""

    def __init__(self, ttl_s: float, moment: float) -> None:
        self._ttl_s, self._warn_s = ttl_s, warn_before_s(ttl_s)
        self._still_since = self._looked = moment
        self._moved: tuple[float, ...] = ()
        self.ends_at: float | None = None  # the moment at which it is to be ended, once that was announced

    def look(self, sample: Json, cpu_s: float, idle: bool, moment: float, now: float) -> str:
        """What is to be done: `wait`, `warn` (from now on it is known when it ends) or `end`."""
        moved = (float(sample["input_at"]), float(sample["output_at"]), cpu_s)
        if not idle:
            self._still_since = moment
        elif moved != self._moved:
            quiet_s = max(0.0, now - max(moved[:2])) if self._moved and moved[2] == self._moved[2] else 0.0
            self._still_since = max(self._looked, moment - quiet_s)
        self._moved, self._looked = moved, moment
        if moment - self._still_since < self._ttl_s - self._warn_s:
            self.ends_at = None
            return "wait"
        if self.ends_at is None:  # never without a warning, also where nobody could look for a while
            self.ends_at = max(self._still_since + self._ttl_s, moment + self._warn_s)
            return "warn"
        return "end" if moment >= self.ends_at else "wait"

    def due(self) -> float:
        """The moment of the next look."""
        return self._still_since + self._ttl_s - self._warn_s if self.ends_at is None else self.ends_at
