"""What surfaces show a terminal's output with: safe to print, as plain text, as a recording, as a picture."""

from __future__ import annotations

from ..term.cast import Event, cast
from ..term.plain import to_text
from ..term.queries import QueryFilter
from ..term.reset import reset_sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..term.screen import Screen

__all__ = ["Event", "QueryFilter", "Screen", "cast", "picture", "reset_sequence", "to_text"]


def picture(cols: int, rows: int) -> Screen:
    """A terminal of one's own, without history; close it. Loaded only here: the engine is large."""
    from ..term.screen import Screen

    return Screen(cols, rows, 0)
