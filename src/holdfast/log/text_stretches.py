"""Finds ranges of the log that are plain text, which an emulator may skip because later lines scroll them away."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .layout import RECORD, RECORD_BYTES, RESIZE, segment_name, segments

_BLOCK_BYTES = 256 << 10  # bytes searched at once: fits a processor's cache
# What does more than print or move the cursor: sequences, a question, character sets, and C1 characters in UTF-8.
_MORE_THAN_TEXT = (b"\x1b", b"\x05", b"\x0e", b"\x0f", b"\xc2")
_LINE = b"\r\n"


def plain_before(folder: str, start: int, to: int, lines: int) -> tuple[int, int]:
    """A range of plain text between `start` and `to`, from one line's beginning to another's, with at least the given
    number of plain lines after it. Empty if other bytes, a gap or a resize are too near to the end.

    It is searched from the end: what came before does not matter.
    """
    at, begin, cut, seen = to, to, -1, 0
    for segment in reversed([s for s in segments(folder) if s < to]):
        start = max(start, _last_resize(folder, segment, to))
        for low, data in _backwards(folder, segment, max(segment, start), at):
            plain = data[max(map(data.rfind, _MORE_THAN_TEXT)) + 1 :]
            first = low + len(data) - len(plain)
            if cut < 0:
                cut, seen = _cut(plain, first, lines, seen)
            if _LINE in plain:
                begin = first + plain.index(_LINE) + len(_LINE)
            at = first
            if first > low:
                break
        if at > max(segment, start) or at == start:
            break
    return (begin, cut) if begin < cut else (to, to)


def _backwards(folder: str, segment: int, low: int, high: int) -> Iterator[tuple[int, bytes]]:
    """The bytes of one segment between two offsets, the last ones first; none if the file lacks some of them."""
    try:
        fd = os.open(os.path.join(folder, segment_name(segment) + ".out"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # pruned just now
    try:
        while high > low and os.fstat(fd).st_size >= high - segment:
            at = max(low, high - _BLOCK_BYTES)
            yield at, os.pread(fd, high - at, at - segment)
            high = at
    finally:
        os.close(fd)


def _cut(plain: bytes, offset: int, lines: int, seen: int) -> tuple[int, int]:
    """The start of the last line in `plain` with enough lines after it (or -1), and the number of lines so far."""
    found = plain.count(_LINE)
    if seen + found <= lines:
        return -1, seen + found
    at = 0
    for _ in range(seen + found - lines):
        at = plain.index(_LINE, at) + len(_LINE)
    return offset + at, seen + found


def _last_resize(folder: str, segment: int, to: int) -> int:
    """The offset of the last resize in this segment, up to `to`."""
    try:
        with open(os.path.join(folder, segment_name(segment) + ".idx"), "rb") as f:
            data = f.read()
    except OSError:
        return to  # unknown
    whole = data[: len(data) // RECORD_BYTES * RECORD_BYTES]
    return max((r[0] for r in RECORD.iter_unpack(whole) if r[4] == RESIZE and r[0] <= to), default=0)
