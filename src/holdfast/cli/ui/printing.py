"""Prints results: tables on a terminal, tab-separated lines in a pipe, JSON on request. Progress goes to stderr."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


def colours() -> bool:
    return "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb" and sys.stdout.isatty()


def paint(text: str, style: str, on: bool | None = None) -> str:
    """Text in a style, if colours are enabled."""
    if not style or not (colours() if on is None else on):
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def safe(text: object) -> str:
    """Text made safe for a terminal: it cannot move the cursor or hide its length."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def write(content: bytes) -> None:
    """Write bytes of a program or an agent: unchanged, but filtered for a terminal."""
    if sys.stdout.isatty():
        from ...client.terminal_output import TerminalFilter

        shown = TerminalFilter()
        content = shown.strip(content) + shown.flush()
    sys.stdout.buffer.write(content)


def print_json(value: object) -> None:
    import json

    sys.stdout.write(json.dumps(value) + "\n")  # ASCII: bytes that are not UTF-8 survive as escapes


def flush() -> None:
    """Flush stdout, so that a reader gets each line at once."""
    sys.stdout.flush()


def table(
    headers: Sequence[str], rows: Sequence[Sequence[object]], styles: Sequence[Sequence[str]] | None = None
) -> None:
    """Aligned with a header on a terminal; one tab-separated line per row in a pipe."""
    cells = [[safe(c) for c in row] for row in rows]
    if not sys.stdout.isatty():
        for row in cells:
            sys.stdout.write("\t".join(c.replace("\t", " ") for c in row) + "\n")
        return
    widths = [max([len(h), *(len(r[i]) for r in cells)]) for i, h in enumerate(headers)]
    sys.stdout.write(paint("  ".join(h.ljust(w) for h, w in zip(headers, widths, strict=True)).rstrip(), "dim") + "\n")
    for n, row in enumerate(cells):
        out = []
        for i, cell in enumerate(row):
            padded = cell.ljust(widths[i]) if i < len(row) - 1 else cell
            out.append(paint(padded, styles[n][i]) if styles else padded)
        sys.stdout.write("  ".join(out).rstrip() + "\n")


def note(text: str) -> None:
    """Print a note for a person to stderr."""
    print(text, file=sys.stderr)


def age(rfc3339: str | None, now: float) -> str:
    """How long ago, in two units at most: 3s, 12m, 4h 5m, 2d 3h."""
    if not rfc3339:
        return "-"
    import time  # and not datetime, which would cost every `ls` three milliseconds

    numbers = [int(rfc3339[a:b]) for a, b in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))]
    year, month, day, hour, minute, second = numbers
    then = time.mktime((year, month, day, hour, minute, second, 0, 0, 0)) - time.timezone  # the wire's times are UTC
    return span(max(0, int(now - then)))


def span(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m"
    if seconds < 86400:
        return f"{seconds // 3600}h {seconds % 3600 // 60}m"
    return f"{seconds // 86400}d {seconds % 86400 // 3600}h"


def size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
