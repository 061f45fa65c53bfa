"""How much the host keeps of requests that are not whole yet, over all its connections: each may be large, not all."""

from __future__ import annotations

from ..model.errors import HoldfastError
from ..model.limits import REQUEST_SMALL_BYTES, REQUESTS_BYTES_MAX


class Reading:
    """One per host. A connection takes room for what it has read and gives it back when its requests are begun."""

    __slots__ = ("_most", "held")

    def __init__(self, most: int = REQUESTS_BYTES_MAX) -> None:
        self._most = most
        self.held = 0

    def take(self, own: int, more: int) -> None:
        """Room for `more` bytes beside the `own` that this connection has; large requests leave room for small ones."""
        most = self._most if own + more <= REQUEST_SMALL_BYTES else self._most - self._most // 4
        if self.held + more > most:
            raise HoldfastError("busy", "the host is reading too many large requests at once", "try again in a moment")
        self.held += more

    def give(self, size: int) -> None:
        self.held -= size
