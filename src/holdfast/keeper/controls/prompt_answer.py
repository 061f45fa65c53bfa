"""An answer belongs to one prompt: the facts that must still be true in the moment it is typed."""

from __future__ import annotations

import termios

from ...model.sessions.controls import Refused

HOLD = "answer"  # the controls are had for this while an answer is typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..keeper import Keeper


def check(keeper: Keeper, expect: dict[str, Any]) -> None:
    """Refuse unless nothing was typed or printed since the prompt was seen, and echo is as it was then."""
    keeper.catch_up()  # the program may have gone on to its next prompt just now
    echo = None
    if keeper.program.master >= 0:
        echo = bool(termios.tcgetattr(keeper.program.master)[3] & termios.ECHO)
    if (
        keeper.exit is not None
        or len(keeper.input) > 0
        or keeper.input_at != expect["input_at"]
        or keeper.log.end != expect["end"]
        or echo != expect["echo"]
    ):
        raise Refused("conflict", "the prompt that this answers is gone", "hold inbox shows what waits now")
