"""The acts themselves: typing and sizing, each checked, recorded and done in one breath."""

from __future__ import annotations

import time

from ...model import limits
from ...model.sessions.controls import Actor, Refused
from ..channels.channel import Channel
from ..start import program
from . import controls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

    from ..keeper import Keeper

_LINE_ENDS = (b"\r", b"\n", b"\x03", b"\x04")  # a line that was sent, given up, or ended


def may(channel: Channel, right: str) -> bool:
    return channel.host or right in channel.rights


def require(channel: Channel, right: str) -> None:
    """The channel's right to this one act, now: rights end by the clock too, whatever the timers do."""
    if not may(channel, right):
        raise Refused("not_allowed", f"this channel may not {right}", "attach without -r, or ask for the right")
    if channel.until and time.time() >= channel.until:
        raise Refused("not_allowed", "this channel's rights have ended", "ask for a new grant")


def put(keeper: Keeper, actor: Actor, data: bytes, via: str, what: str, exec_id: str = "", why: str = "") -> bool:
    """Type for the holder: checked, recorded, written, in this order. Whether echo was off then."""
    keeper.input.check(data)
    now = time.time()
    keeper.record.typed(actor, keeper.controls.epoch, keeper.log.end, now, time.monotonic(), via, what, exec_id, why)
    keeper.input.add(data, actor.operator)
    keeper.typed += 1
    keeper.midline = data[-1:] not in _LINE_ENDS
    keeper.input_at = now
    off = keeper.input.echo_off
    keeper.flush_input()
    return off or keeper.input.echo_off


# -- size -------------------------------------------------------------------------------------------------------


def resize(
    keeper: Keeper, channel: Channel, actor: Actor, cols: int, rows: int, hold: str, *, epoch: int = 0, why: str = ""
) -> None:
    if not (1 <= cols <= limits.COLS_MAX and 1 <= rows <= limits.ROWS_MAX):
        raise Refused(
            "invalid",
            f"a terminal of {cols}x{rows}",
            f"1x1 to {limits.COLS_MAX}x{limits.ROWS_MAX} is possible",
        )
    if keeper.program.master < 0:
        return
    require(channel, "resize")
    if channel.size != (cols, rows):
        channel.size = (cols, rows)
    if (cols, rows) == keeper.size:  # nothing to do, and nothing to tell: an event for it would be answered again
        return
    if hold in keeper.controls.holds and not epoch:
        apply_size(keeper, actor, cols, rows, why)
    else:
        controls.for_its_duration(keeper, actor, lambda: apply_size(keeper, actor, cols, rows, why), epoch)


def apply_size(keeper: Keeper, actor: Actor, cols: int, rows: int, why: str = "") -> None:
    if (cols, rows) == keeper.size:
        return
    controls.note(keeper, "resize", actor, why, {"size": [cols, rows]}, refusable=True)
    keeper.size = (cols, rows)
    keeper.log.resized(cols, rows, time.time_ns() // 1000)
    program.set_size(keeper.program.slave, cols, rows)
    keeper.tell({"event": "resize", "size": [cols, rows], "offset": keeper.log.end})


def error(keeper: Keeper, e: Refused) -> Json:
    """A refusal as the client gets it; about the controls it says how they stand."""
    about: Json = {"code": e.code, "message": e.message, "hint": e.hint}
    if e.code in ("conflict", "stale_epoch"):
        about["controls"] = keeper.controls.as_dict()
    return about
