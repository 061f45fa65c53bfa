"""The in-band marks around a command's output: how they look, and where they are in a stream that comes in pieces."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

# An OSC number that no terminal acts on; unknown ones are swallowed up to BEL by everything that parses OSC.
_OPENING = b"\x1b]7733;"
_TOKEN = re.compile(r"[0-9a-f]{32}")  # 128 random bits: nothing prints that by chance
MARK_BYTES = len(_OPENING) + len("b;") + 32 + len(b"\x07")

Kind = Literal["b", "e"]


class Mark(NamedTuple):
    """One mark in the stream; `start` is its first byte, `end` the byte after it, both absolute offsets."""

    kind: Kind
    start: int
    end: int


def check_token(token: str) -> bytes:
    if not _TOKEN.fullmatch(token):
        raise ValueError("a token is 32 hexadecimal digits")
    return token.encode()


def mark(kind: Kind, token: str) -> bytes:
    return _OPENING + kind.encode() + b";" + check_token(token) + b"\x07"


class MarkScanner:
    """Finds the marks of one token. Holds less than one mark's length of what it has seen."""

    def __init__(self, token: str) -> None:
        # All that differs between the two marks stands before this, so one search finds both.
        self._closing = mark("b", token)[len(_OPENING) + 1 :]
        self._size = MARK_BYTES
        self._tail = b""
        self._next: int | None = None

    def feed(self, offset: int, data: bytes) -> list[Mark]:
        """The marks that end in `data`, which starts at `offset`. Bytes seen before are skipped; after a gap no mark
        is put together from its two sides."""
        if self._next is not None:
            if offset < self._next:
                data, offset = data[self._next - offset :], self._next
            elif offset > self._next:
                self._tail = b""
        if not data:
            return []
        self._next = offset + len(data)
        seam = self._tail + data[: self._size - 1]
        found = self._search(seam, offset - len(self._tail), offset)  # only those that cross the border fit in it
        found += self._search(data, offset, offset)
        keep = self._size - 1
        self._tail = data[-keep:] if len(data) >= keep else (self._tail + data)[-keep:]
        return found

    def _search(self, data: bytes, base: int, ends_after: int) -> list[Mark]:
        """The marks in `data`, which starts at `base`, that end past `ends_after`."""
        found: list[Mark] = []
        at = data.find(self._closing)
        while at >= 0:
            end = at + len(self._closing)
            start = end - self._size
            if start >= 0 and base + end > ends_after and data.startswith(_OPENING, start):
                kind = data[at - 1 : at]
                if kind == b"b":
                    found.append(Mark("b", base + start, base + end))
                elif kind == b"e":
                    found.append(Mark("e", base + start, base + end))
            at = data.find(self._closing, end)
        return found
