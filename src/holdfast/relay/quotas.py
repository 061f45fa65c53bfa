"""How much a key (a device, an address) may use: so much at once, and so much per second after that."""

from __future__ import annotations

from ..model.limits import RELAY_KEYS_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable


class Quota:
    """A token bucket per key, for a bounded number of keys. A clock that goes back gives nothing and takes nothing."""

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._buckets: dict[Hashable, tuple[float, float]] = {}  # key -> (left, at), the least recently used first

    def wait_s(self, key: Hashable, amount: float, now: float) -> float:
        """Ask before: 0.0 and the amount (at most the burst) is taken, or how long to wait. For attempts."""
        left = self._left(key, now)
        allowed = left >= amount
        self._keep(key, left - amount if allowed else left, now)
        return 0.0 if allowed else (amount - left) / self._per_s

    def pause_s(self, key: Hashable, amount: float, now: float) -> float:
        """Tell afterwards: the amount is taken, and the line is not read for so long. For bytes, which have come."""
        left = self._left(key, now) - amount
        self._keep(key, left, now)
        return max(0.0, -left / self._per_s)

    def _left(self, key: Hashable, now: float) -> float:
        left, at = self._buckets.pop(key, (self._burst, now))
        return min(self._burst, left + max(0.0, now - at) * self._per_s)

    def _keep(self, key: Hashable, left: float, now: float) -> None:
        self._buckets[key] = left, now
        if len(self._buckets) > RELAY_KEYS_MAX:
            del self._buckets[next(iter(self._buckets))]
