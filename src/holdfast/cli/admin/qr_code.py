"""Draws a QR code in a terminal: two modules per character, dark on light in every colour scheme."""

from __future__ import annotations

from collections.abc import Sequence

_QUIET = 4  # light modules around it, as the standard asks: cameras look for them
_HALVES = {(0, 0): " ", (1, 0): "▀", (0, 1): "▄", (1, 1): "█"}
_DARK_ON_LIGHT, _PLAIN = "\x1b[38;5;16;48;5;231m", "\x1b[0m"


def lines(text: str, *, coloured: bool) -> list[str]:
    """The code's lines; without colours the light modules are drawn, which suits a dark terminal."""
    import segno  # for this one command alone

    made = segno.make_qr(text, error="l")  # the smallest: a screen has no dirt on it
    return rows([[int(bool(module)) for module in row] for row in made.matrix_iter(border=_QUIET)], coloured=coloured)


def rows(matrix: Sequence[Sequence[int]], *, coloured: bool) -> list[str]:
    """Two rows of modules per line; 1 is dark."""
    flip = 0 if coloured else 1
    light = [0] * len(matrix[0])
    out = []
    for at in range(0, len(matrix), 2):
        above, below = matrix[at], matrix[at + 1] if at + 1 < len(matrix) else light
        line = "".join(_HALVES[a ^ flip, b ^ flip] for a, b in zip(above, below, strict=True))
        out.append(f"{_DARK_ON_LIGHT}{line}{_PLAIN}" if coloured else line)
    return out
