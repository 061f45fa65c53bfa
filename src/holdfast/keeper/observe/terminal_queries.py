"""What a program asks its terminal: the host's emulator is told and answers, but for what is in ANSWERED.

OSC 7501 asks whether anything listens to what the program says of itself. Agents ask it once, when they start, so the
keeper answers: also while the host is down, and before the emulator answers what was asked right behind it.
"""

from __future__ import annotations

import os
import time

from ...model.sessions import program_status
from ...model.sessions.controls import Refused
from ...term.queries import MAYBE_QUERY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..keeper import Keeper

# What the keeper answers itself, and how. All else is the emulator's, which the host has; WELCOME names these.
ANSWERED: dict[str, bytes] = {"OSC 7501": program_status.REPLY}

_TAIL = 32  # bytes of the last chunk kept so that a query cut in two is still seen


def look_for_query(keeper: Keeper, offset: int, data: bytes) -> None:
    escapes = b"\x1b" in data  # most of a flood has none
    if escapes or keeper.says.open:
        _listen(keeper, data)
    if not (keeper.tail or escapes or b"\x05" in data):
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


def _listen(keeper: Keeper, data: bytes) -> None:
    """Answer the question, and keep the newest report with the foreground group that made it: it ends with that."""
    asked, said = keeper.says.hear(data)
    if said is not None:
        keeper.says.report = {**said, "group": os.tcgetpgrp(keeper.program.master), "end": keeper.log.end}
        keeper.says.heard_at = time.monotonic()
    if asked:
        _answer(keeper, ANSWERED["OSC 7501"])


def _answer(keeper: Keeper, reply: bytes) -> None:
    """The terminal speaks, not an operator: no epoch is involved, and nothing is recorded."""
    try:
        keeper.input.room(len(reply))
        keeper.input.check(reply)
    except Refused:
        return  # a program that does not read its input does not read the answer either
    keeper.input.add(reply, "")
    keeper.flush_input()
