"""Output to the disk about once a second, beside the loop."""

from __future__ import annotations

import _thread
import os

from ..log.writer import sync_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .keeper import Keeper

_BEGIN_S = 5.0  # a thread that has not begun by then never will: there was no memory for its first step


class Syncing:
    """The sync under way: when it was asked for (0: there is none), and whether its thread came to life."""

    __slots__ = ("begun", "since")

    def __init__(self) -> None:
        self.since, self.begun = 0.0, False


def start_sync(keeper: Keeper, now: float) -> bool:
    """fdatasync beside the loop: a slow disk must not be felt in a keystroke. False when it is to be tried again: one
    is under way, or there is no descriptor or no thread to be had."""
    state = keeper.syncing
    if state.since and (state.begun or now - state.since < _BEGIN_S):
        return False
    former, end = keeper.log.unsynced(), keeper.log.end
    try:
        out, idx = keeper.log.sync_targets()
    except OSError:
        return False
    if out < 0:
        return True
    state.since, state.begun = now, False

    def sync() -> None:
        state.begun = True
        try:
            sync_paths(former)
            os.fdatasync(out)
            os.fdatasync(idx)
            keeper.log.durable = max(keeper.log.durable, end)
        except OSError:
            keeper.log.refused = True
        finally:
            os.close(out)
            os.close(idx)
            state.since = 0.0
            try:
                os.write(keeper.sync_write, b"s")
            except OSError:
                pass

    try:
        _thread.start_new_thread(sync, ())
    except RuntimeError:
        state.since = 0.0
        os.close(out)
        os.close(idx)
        return False
    return True
