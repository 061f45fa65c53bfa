"""What surfaces show a terminal's output with: safe to print, as plain text, as a recording, as a picture."""

from __future__ import annotations

import os

from ..term.asciicast import Event, cast
from ..term.plain_text import to_text
from ..term.reset import reset_sequence
from ..term.terminal_filter import TerminalFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.home import Home
    from ..term.screen import Screen

__all__ = [
    "Event",
    "Exact",
    "Screen",
    "TerminalFilter",
    "cast",
    "picture",
    "reset_sequence",
    "shown_on",
    "to_text",
]


class Exact:
    """Every byte as it is: for a file, a pipe, and a person who said --raw."""

    def strip(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def shown_on(fd: int, home: Home | None, *, raw: bool = False) -> TerminalFilter | Exact:
    """What output goes through on its way to a descriptor: where that is a terminal, it gets what the table allows."""
    if raw or not os.isatty(fd):
        return Exact()
    return TerminalFilter(clipboard=_clipboard(home))


def _clipboard(home: Home | None) -> bool:
    """`clipboard = "write"` in `[terminal]` of the home's config.toml: programs may write this terminal's clipboard."""
    if home is None:
        return False
    try:
        with open(os.path.join(home.path, "config.toml"), "rb") as file:
            import tomllib  # most homes have no such file

            table = tomllib.load(file).get("terminal")
    except (OSError, ValueError):  # not there, or broken: the strict way
        return False
    return isinstance(table, dict) and table.get("clipboard") == "write"


def picture(cols: int, rows: int) -> Screen:
    """A terminal of one's own, without history; close it. Loaded only here: the engine is large."""
    from ..term.screen import Screen

    return Screen(cols, rows, 0)
