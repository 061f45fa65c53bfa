"""Reading QR codes: as modules (true is dark) by a library that has no part in drawing them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import zxingcpp

_PX = 4  # pixels of one module: cameras are worse
_HALVES = {" ": (False, False), "▀": (True, False), "▄": (False, True), "█": (True, True)}


def read(modules: Sequence[Sequence[bool]]) -> str:
    """What a code says; its quiet zone must be part of it."""
    rows = [b"".join((b"\x00" if dark else b"\xff") * _PX for dark in row) * _PX for row in modules]
    picture = memoryview(b"".join(rows)).cast("B", shape=[len(modules) * _PX, len(modules[0]) * _PX])
    (found,) = zxingcpp.read_barcodes(picture)
    return found.text


def from_terminal(text: str, *, coloured: bool) -> list[list[bool]]:
    """The modules that a terminal shows: half a character each; without colours the drawn ones are light."""
    modules: list[list[bool]] = []
    for line in text.splitlines():
        halves = [_HALVES[c] for c in re.sub(r"\x1b\[[0-9;]*m", "", line)]
        modules += [[above is coloured for above, _ in halves], [below is coloured for _, below in halves]]
    return modules
