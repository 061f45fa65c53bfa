"""What one viewer of a terminal has been sent, and has said it has shown. Pure: bytes and offsets in, bytes out."""

from __future__ import annotations

from collections import deque

from ..term.queries import QueryFilter


class Stream:
    """Output without the questions that a terminal would answer, each piece with the offset to go on from after it.

    Where a piece ends inside an escape sequence that is held back or being removed, that offset is the sequence's
    beginning: whoever goes on from there loses nothing and sees nothing twice.
    """

    def __init__(self, at: int) -> None:
        self.at = at  # the next byte that is wanted
        self._filter, self._from, self._left_out, self._inside = QueryFilter(), at, 0, 0

    def begin(self, restore: bytes, at: int) -> bytes:
        """A screen was drawn anew, as of `at`; it may end inside a sequence that the output goes on with."""
        self.at = at
        self._filter = QueryFilter()
        drawn = self._filter.strip(restore)
        self._from, self._left_out, self._inside = at - len(restore), 0, 0
        return drawn

    def feed(self, offset: int, data: bytes) -> bytes:
        """What is to be shown of a piece. One from before a jump, or twice the same, is nothing."""
        if offset > self.at or offset + len(data) <= self.at:
            return b""
        data = data[self.at - offset :]
        self.at += len(data)
        first, *rest = data.split(b"\x05")  # ENQ is a question too; here it is counted
        shown = [self._filter.strip(first)]
        for piece in rest:
            if self._filter.open:
                self._inside += 1
            else:
                self._left_out += 1
            shown.append(self._filter.strip(piece))
            if not self._filter.open:
                self._left_out, self._inside = self._left_out + self._inside, 0
        return b"".join(shown)

    def gap(self, start: int, end: int) -> bool:
        """Output that is gone; whether it is news."""
        if start > self.at or end <= self.at:
            return False
        self.at = end
        self._filter, self._from, self._left_out, self._inside = QueryFilter(), end, 0, 0
        return True

    @property
    def settled(self) -> int:
        """The offset to go on from."""
        if not self._filter.open:
            return self.at
        return min(self.at, self._from + self._filter.settled + self._left_out)


class Window:
    """Flow control: at most so many bytes on their way to a viewer that has not said that it has shown them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sent = self._shown = 0
        self._waiting: deque[tuple[int, int]] = deque()  # the offset after a frame, and the bytes sent by then

    def sent(self, after: int, size: int) -> None:
        self._sent += size
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
