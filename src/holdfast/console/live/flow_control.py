"""What one viewer of a terminal has been sent, and has said it has shown. Pure: bytes and offsets in, bytes out."""

from __future__ import annotations

from collections import deque

from ...client.terminal_output import TerminalFilter

_ENQS_MAX = 4096  # within one escape sequence: a hostile one with more is gone on from a little late
_FRAME_COST = 256  # what a frame of a byte counts for: frames are bounded as bytes are


class FilteredStream:
    """What a page's terminal may get of the output, each piece with the offset to go on from after it.

    Where a piece ends inside an escape sequence that is held back or being removed, that offset is the sequence's
    beginning: whoever goes on from there loses nothing and sees nothing twice.
    """

    def __init__(self, at: int) -> None:
        self.at = at  # the next byte that is wanted
        self._anew(at)

    def _anew(self, start: int) -> None:
        self._filter, self._start = TerminalFilter(strings=False), start
        self._fed = 0  # bytes that the filter was given
        self._gone, self._enqs = 0, deque[int]()  # ENQs taken out before that: their number; where the latest were

    def begin(self, restore: bytes, at: int) -> bytes:
        """A screen was drawn anew, as of `at`; it may end inside a sequence that the output goes on with."""
        self.at = at
        self._anew(at - len(restore))
        return self._strip(restore)

    def feed(self, offset: int, data: bytes) -> bytes:
        """What is to be shown of a piece. One from before a jump, or twice the same, is nothing."""
        if offset > self.at or offset + len(data) <= self.at:
            return b""
        data = data[self.at - offset :]
        self.at += len(data)
        return self._strip(data)

    def _strip(self, data: bytes) -> bytes:
        first, *rest = data.split(b"\x05")  # ENQ is a question by itself; here it is counted
        shown = [self._passed(first)]
        for piece in rest:
            self._enqs.append(self._fed)
            if len(self._enqs) > _ENQS_MAX:
                self._enqs.popleft()
                self._gone += 1
            shown.append(self._passed(piece))
        if not self._filter.open:
            self._gone += len(self._enqs)
            self._enqs.clear()
        return b"".join(shown)

    def _passed(self, data: bytes) -> bytes:
        self._fed += len(data)
        return self._filter.strip(data)

    def gap(self, start: int, end: int) -> bool:
        """Output that is gone; whether it is news."""
        if start > self.at or end <= self.at:
            return False
        self.at = end
        self._anew(end)
        return True

    @property
    def settled(self) -> int:
        """The offset to go on from."""
        if not self._filter.open:
            return self.at
        begun = self._filter.settled
        return min(self.at, self._start + begun + self._gone + sum(enq <= begun for enq in self._enqs))


class SendWindow:
    """Flow control: at most so many bytes on their way to a viewer that has not said that it has shown them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sent = self._shown = 0
        self._waiting: deque[tuple[int, int]] = deque()  # the offset after a frame, and the bytes sent by then

    def sent(self, after: int, size: int) -> None:
        self._sent += max(size, _FRAME_COST)
        self._waiting.append((after, self._sent))

    def acked(self, offset: int) -> None:
        while self._waiting and self._waiting[0][0] <= offset:
            self._shown = self._waiting.popleft()[1]

    @property
    def full(self) -> bool:
        return self._sent - self._shown >= self._most

    @property
    def roomy(self) -> bool:
        """Enough was shown to go on: half of it, so that it goes on in pieces worth the while."""
        return self._sent - self._shown <= self._most // 2
