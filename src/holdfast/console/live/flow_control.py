"""Tracks what a terminal's viewer was sent and has acknowledged. Pure: bytes and offsets in, bytes out."""

from __future__ import annotations

from collections import deque

from ...client.terminal_output import TerminalFilter

_ENQS_MAX = 4096  # within one escape sequence: after a hostile one with more, the offset is a little late
_FRAME_COST = 256  # the least that a frame counts for: the number of frames is bounded too


class FilteredStream:
    """Filters output for a page's terminal, and gives each piece the offset to continue from.

    Where a piece ends inside an escape sequence that is held back or being removed, that offset is the sequence's
    beginning: a reader that continues there misses nothing and gets nothing twice.
    """

    def __init__(self, at: int) -> None:
        self.at = at  # the next byte to send
        self._anew(at)

    def _anew(self, start: int) -> None:
        self._filter, self._start = TerminalFilter(strings=False), start
        self._fed = 0  # bytes passed to the filter
        self._gone, self._enqs = (
            0,
            deque[int](),
        )  # ENQs removed before that: their number, and the offsets of the latest

    def begin(self, restore: bytes, at: int) -> bytes:
        """A screen was redrawn as of `at`; it may end inside a sequence that the output continues."""
        self.at = at
        self._anew(at - len(restore))
        return self._strip(restore)

    def feed(self, offset: int, data: bytes) -> bytes:
        """The bytes to show of a piece; none if it is from before a jump, or a repetition."""
        if offset > self.at or offset + len(data) <= self.at:
            return b""
        data = data[self.at - offset :]
        self.at += len(data)
        return self._strip(data)

    def _strip(self, data: bytes) -> bytes:
        first, *rest = data.split(b"\x05")  # ENQ is a query of one byte; it is counted here
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
        """Skip pruned output; whether this was not known yet."""
        if start > self.at or end <= self.at:
            return False
        self.at = end
        self._anew(end)
        return True

    @property
    def settled(self) -> int:
        """The offset to continue from."""
        if not self._filter.open:
            return self.at
        begun = self._filter.settled
        return min(self.at, self._start + begun + self._gone + sum(enq <= begun for enq in self._enqs))


class SendWindow:
    """Flow control: limits the bytes that a viewer has not acknowledged yet."""

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
        """Whether half of the window is acknowledged: then sending continues, in large enough pieces."""
        return self._sent - self._shown <= self._most // 2
