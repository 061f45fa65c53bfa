"""What a session said last, in one line: from its screen while it lives, from the end of its log afterwards."""

from __future__ import annotations

from ...term.plain_text import to_text
from ..sessions.session import Session
from .emulators import Screens

_TAIL_BYTES = 4096  # a screen's worth of a log: a line that is longer is cut
_LINE_MAX = 200  # characters shown in a list


async def last_line(session: Session, screens: Screens, end: int) -> str | None:
    """None where it has said nothing yet."""
    if session.connected and session.terminal:
        emulator = await screens.near(session, end)
        with emulator.lock:
            text = emulator.screen.text()
    else:
        tail = (p.data for p in session.reader.pieces(max(0, end - _TAIL_BYTES), end) if p.data is not None)
        text = to_text(b"".join(tail))
    return last_of(text)


def last_of(text: str) -> str | None:
    """The last line with something in it."""
    for line in reversed(text.splitlines()):
        if line.strip():
            return line.strip()[:_LINE_MAX]
    return None
