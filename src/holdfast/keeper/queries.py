"""Telling the host when a program may have asked its terminal something; the host's emulator answers."""

from __future__ import annotations

import time

from ..term.queries import MAYBE_QUERY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .keeper import Keeper

_TAIL = 32  # bytes of the last chunk kept so that a query cut in two is still seen


def look_for_query(keeper: Keeper, offset: int, data: bytes) -> None:
    if not (keeper.tail or b"\x1b" in data or b"\x05" in data):
        return
    joined = keeper.tail + data
    if MAYBE_QUERY.search(joined):
        keeper.query = {"event": "query", "offset": offset, "end": keeper.log.end}
        keeper.query_at = time.monotonic()
        keeper.tell_host(keeper.query)
        keeper.tail = b""
        return
    cut = joined.rfind(b"\x1b", max(0, len(joined) - _TAIL))
    keeper.tail = joined[cut:] if cut >= 0 else b""
