"""Fits program output into a token budget: selects byte ranges and trims their edges. Pure."""

from __future__ import annotations

import re

from ...client.terminal_output import to_text
from ...model.errors import invalid

TOKENS_DEFAULT = 1000  # default tokens of output in one answer: a screen and a half
TOKENS_MAX = 20_000  # the most that clients show at once; more is read from an offset
BYTES_PER_TOKEN = 4  # of program output; a stable estimate
_HEAD = 0.4  # the head's share of the budget: the end is more often informative
_EDGE_BYTES = 512  # how far an edge is moved to reach a line's end

Range = tuple[int, int]
_HALVES = re.compile("[\ud800-\udfff]")  # bytes of names that are not UTF-8, as Python holds them


def sendable(text: str) -> str:
    """The text, valid for JSON: a folder or an argument may contain bytes that are not text."""
    return _HALVES.sub("\N{REPLACEMENT CHARACTER}", text)


def budget(max_tokens: int | None) -> int:
    """Bytes of output that an answer may hold."""
    tokens = TOKENS_DEFAULT if max_tokens is None else max_tokens
    if tokens < 1:
        raise invalid("max_tokens must be at least 1", "leave it out")
    return min(tokens, TOKENS_MAX) * BYTES_PER_TOKEN


def ranges(start: int, end: int, most: int) -> list[Range]:
    """The whole range, or its head and its tail."""
    if end - start <= most:
        return [(start, end)] if end > start else []
    head = max(1, int(most * _HEAD))
    return [(start, start + head), (end - (most - head), end)]


def cut_end(data: bytes) -> bytes:
    """Trim an unfinished last line if a line ends nearby; never cuts a character."""
    at = data.rfind(b"\n", max(0, len(data) - _EDGE_BYTES))
    if at >= 0:
        return data[: at + 1]
    while data and data[-1] & 0xC0 == 0x80:  # an incomplete character
        data = data[:-1]
    return data[:-1] if data and data[-1] >= 0xC0 else data


def cut_start(data: bytes) -> bytes:
    """Trim an incomplete first line if a line ends nearby."""
    at = data.find(b"\n", 0, _EDGE_BYTES)
    if at >= 0:
        return data[at + 1 :]
    skip = 0
    while skip < min(4, len(data)) and data[skip] & 0xC0 == 0x80:
        skip += 1
    return data[skip:]


def joined(parts: list[tuple[int, bytes]], end: int) -> tuple[str, list[dict[str, int]]]:
    """The text of consecutive pieces (offset, bytes), and the omitted ranges up to `end`.

    The text marks each omission, so that a head and a tail are never read as one.
    """
    text, omitted, at = "", list[dict[str, int]](), parts[0][0] if parts else end
    for offset, data in parts:
        if offset > at:
            omitted.append({"from": at, "to": offset})
            text += f"\n[… {offset - at} bytes left out: read from {at} …]\n" if text else ""
        text += to_text(data)
        at = offset + len(data)
    if at < end:
        omitted.append({"from": at, "to": end})
    return text, omitted
