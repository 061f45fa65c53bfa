"""A session's output with its times, page by page, for replay and export."""

from __future__ import annotations

import base64
from typing import Any

from ...model.errors import invalid
from ..sessions.session import Session

Json = dict[str, Any]

# One reply: 192 kB of output are 256 kB of base64. Events are counted too, because a slow typist's output comes
# a byte at a time and each of them costs some 40 bytes of JSON.
_PAGE_BYTES = 192 << 10
_PAGE_EVENTS = 4096
_CODES = {0: "o", 1: "o", 2: "e"}  # terminal, stdout, stderr


def recording(session: Session, start: int | None, limit_bytes: int = _PAGE_BYTES) -> Json:
    """Events from an offset on, where they start, and the offset of the next page (None: that was all there is now).

    An event is [seconds since 1970, code, value]: `o` and `e` with base64, `r` with COLSxROWS, `gap` with FROM-TO.
    Where the log kept no time, the last known one is repeated. A size at the border of two pages may come twice.
    """
    first, end = session.reader.bounds()
    at = first if start is None else int(start)
    if at < 0:
        raise invalid(f"no output lies at offset {at}", "offsets begin at 0")
    began = max(at, first)
    known_s = float(session.manifest["created_at"])
    events: list[list[object]] = []
    size = 0
    for piece in session.reader.pieces(at, end, resizes=True):
        known_s = piece.time_us / 1e6 if piece.time_us else known_s
        if piece.size is not None:
            if events and events[-1][1] == "r":
                events.pop()  # nothing was printed in between: the last size is the one that counts
            events.append([known_s, "r", f"{piece.size[0]}x{piece.size[1]}"])
            continue
        if size >= limit_bytes or len(events) >= _PAGE_EVENTS:
            return {"start": began, "next": at, "events": events}
        if piece.data is None:
            events.append([known_s, "gap", f"{piece.offset}-{piece.end}"])
        else:
            events.append([known_s, _CODES.get(piece.stream, "o"), base64.b64encode(piece.data).decode()])
            size += len(piece.data)
        at = piece.end
    return {"start": began, "next": None, "events": events}
