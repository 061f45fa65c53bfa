"""Cell styles as SGR parameters (the part of `CSI … m` between bracket and m)."""

from __future__ import annotations

import functools

# Flag bits of a style record, in the order of the SGR numbers they stand for. Underline is a number of its own.
_FLAGS = ((0, "1"), (2, "2"), (1, "3"), (3, "5"), (4, "7"), (5, "8"), (6, "9"), (7, "53"))
# Double underline has an old number that more terminals know; the other kinds exist with a colon only.
_UNDERLINES = ("", "4", "21", "4:3", "4:4", "4:5")


@functools.lru_cache(maxsize=4096)  # a screen full of true-colour gradients has about as many styles
def sgr(style: bytes) -> str:
    """The parameters that turn plain text into `style`, a 16-byte style record; empty for plain."""
    flags = int.from_bytes(style[12:14], "little")
    parts = [number for bit, number in _FLAGS if flags >> bit & 1]
    underline = flags >> 8 & 7
    if underline:
        parts.append(_UNDERLINES[min(underline, 5)])
    parts += _color(style[0:4], 30, 90, "38")
    parts += _color(style[4:8], 40, 100, "48")
    if style[8] == 1:
        parts.append(f"58:5:{style[9]}")
    elif style[8] == 2:
        parts.append(f"58:2::{style[9]}:{style[10]}:{style[11]}")
    return ";".join(parts)


@functools.lru_cache(maxsize=4096)
def select(style: bytes) -> str:
    """The sequence that makes `style` the current one, whatever was before."""
    parameters = sgr(style)
    return f"\x1b[0;{parameters}m" if parameters else "\x1b[m"


def _color(color: bytes, low: int, bright: int, extended: str) -> list[str]:
    kind, first, second, third = color
    if kind == 1:
        if first < 8:
            return [str(low + first)]
        return [str(bright + first - 8)] if first < 16 else [f"{extended};5;{first}"]
    return [f"{extended};2;{first};{second};{third}"] if kind == 2 else []
