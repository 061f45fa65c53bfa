"""One numbered stream: two directions, each with its own credit and its own end."""

from __future__ import annotations

from ...model.limits import SEALED_CREDIT_BYTES, SEALED_QUEUE_BYTES, SEALED_WINDOW_BYTES
from .errors import SealedError


class Stream:
    """Sending: `queue` holds what credit covers, so whatever is queued may be sent. Receiving: `unconsumed` bytes are
    with the link, `owed` ones are consumed and not yet credited."""

    __slots__ = (
        "_in_flight",
        "_unconsumed",
        "closing",
        "kind",
        "owed",
        "peer_closed",
        "purpose",
        "queue",
        "sent_close",
    )

    def __init__(self, kind: int, purpose: bytes) -> None:
        self.kind = kind
        self.purpose = purpose
        self.queue = bytearray()
        self._in_flight = 0  # sent, and not credited yet
        self.closing = self.sent_close = False
        self._unconsumed = self.owed = 0
        self.peer_closed = False

    @property
    def room(self) -> int:
        """How many bytes `write` takes now: what the queue holds, and never more than the credit covers."""
        if self.closing:
            return 0
        queued = len(self.queue)
        return min(SEALED_QUEUE_BYTES - queued, SEALED_WINDOW_BYTES - self._in_flight - queued)

    @property
    def ready(self) -> bool:
        """Whether something can be sent: bytes, or the CLOSE behind them."""
        return bool(self.queue) or (self.closing and not self.sent_close)

    @property
    def over(self) -> bool:
        """Both sides have closed and all bytes were consumed and credited: the number's place is free on both sides.

        Waiting for the last credit keeps the two sides' counts equal, and bounds what a slow link holds: streams that
        are closed but not consumed still count."""
        closed = self.sent_close and self.peer_closed
        return closed and not (self._in_flight or self._unconsumed or self.owed)

    @property
    def owes(self) -> bool:
        """Whether a CREDIT is due: a quarter of the window, or the rest once the other side has closed."""
        if self.peer_closed and not self._unconsumed:
            return self.owed > 0
        return self.owed >= SEALED_CREDIT_BYTES

    def take(self, limit: int) -> bytes:
        """The next bytes to send."""
        with memoryview(self.queue) as queued:  # a slice of the queue itself would be a copy more
            taken = bytes(queued[:limit])
        del self.queue[:limit]
        self._in_flight += len(taken)
        return taken

    def received(self, size: int) -> None:
        if self.peer_closed:
            raise SealedError("stream", "data after CLOSE")
        if self._unconsumed + self.owed + size > SEALED_WINDOW_BYTES:
            raise SealedError("credit", "data without credit")
        self._unconsumed += size

    def closed(self) -> None:
        if self.peer_closed:
            raise SealedError("stream", "closed twice")
        self.peer_closed = True

    def credited(self, size: int) -> None:
        if not 0 < size <= self._in_flight:
            raise SealedError("credit", f"{size} granted, {self._in_flight} sent")
        self._in_flight -= size

    def consumed(self, size: int) -> None:
        if not 0 <= size <= self._unconsumed:
            raise ValueError(f"{size} bytes consumed, {self._unconsumed} received")
        self._unconsumed -= size
        self.owed += size

    def settle(self) -> int:
        """The bytes of the CREDIT that is sent now."""
        owed, self.owed = self.owed, 0
        return owed
