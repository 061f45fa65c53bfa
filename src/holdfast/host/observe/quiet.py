"""How long a session has printed nothing, by clocks that nobody sets: pure, moments and statuses are passed in.

A keeper counts it by itself (`output_age`). One that was started by an older version tells the time of day of its last
output and nothing else, which is worth something only while nobody sets the clock.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def output_age_s(status: Json, now: float) -> float:
    """Seconds since the last output; `now` is the time of day, for an older keeper's sake.

    Of that one, a time that lies ahead says that the clock was set back: then it was some time ago, not this moment.
    """
    age = status.get("output_age")
    return float(age) if age is not None else abs(now - float(status["output_at"]))


class Silence:
    """The same for somebody who looks several times: an older keeper's word is not needed, only patience."""

    def __init__(self) -> None:
        self._end, self._since = -1, 0.0

    def seen(self, status: Json, moment: float) -> float:
        """Seconds of silence so far; `moment` is monotonic."""
        if status["output"]["end"] != self._end:
            self._end, self._since = status["output"]["end"], moment
        age = status.get("output_age")
        return float(age) if age is not None else moment - self._since
