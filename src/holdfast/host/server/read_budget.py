"""How much the host keeps of requests that are not whole yet, over all its connections: each may be large, not all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...model.errors import HoldfastError
from ...model.limits import AHEAD_MAX, REQUEST_S, REQUEST_SMALL_BYTES, REQUESTS_BYTES_MAX
from ...wire import host_requests

Json = dict[str, Any]


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


class Incoming:
    """What one connection has sent and nobody has begun yet. `due` is when its half request must be whole (0: none)."""

    __slots__ = ("_decoder", "_held", "_reading", "due", "waiting")

    def __init__(self, reading: Reading, parse: Callable[[bytes], object] = host_requests.parsed) -> None:
        self._reading, self._decoder, self._held = reading, host_requests.Decoder(parse), 0
        self.waiting: list[Json] = []
        self.due = 0.0

    def feed(self, data: bytes, now: float) -> None:
        self._reading.take(self._held, len(data))
        self._held += len(data)
        whole = self._decoder.feed(data)
        self.waiting += whole
        if not self._decoder.pending:
            self.due = 0.0
        elif not self.due or whole:  # its first bytes
            self.due = now + REQUEST_S
        if len(self.waiting) > AHEAD_MAX:
            raise host_requests.TooLarge("more requests at once than are kept")

    def next(self) -> Json:
        request = self.waiting.pop(0)
        if not self.waiting and not self._decoder.pending:
            self.close()
        return request

    def lent(self) -> host_requests.Decoder:
        """A lane reads on; it keeps no more than a small request of what is not whole."""
        self.close()
        return self._decoder

    def back(self, waiting: list[Json], now: float) -> None:
        """The lane has returned the connection, with what it leaves to us."""
        self.waiting, self.due = waiting, now + REQUEST_S if self._decoder.pending else 0.0
        self._reading.take(0, self._decoder.pending)
        self._held = self._decoder.pending

    def close(self) -> None:
        self._reading.give(self._held)
        self._held = 0
