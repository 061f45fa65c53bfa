"""Output to the disk about once a second, beside the loop."""

from __future__ import annotations

import _thread
import os
import time

from ..model import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .keeper import Keeper

_WORD_BYTES = 512  # more words than can wait


def sync_soon(keeper: Keeper) -> None:
    """There is output that is not on the disk. While some is on its way there, `synced` looks after the rest."""
    if not keeper.sync_due and not keeper.syncing:
        keeper.sync_due = time.monotonic() + limits.SYNC_DELAY_S


def synced(keeper: Keeper) -> None:
    """The thread below has ended. What was printed meanwhile is next: nothing else may ever be."""
    os.read(keeper.sync_read, _WORD_BYTES)
    if keeper.log.end > keeper.sync_end:
        sync_soon(keeper)


def start_sync(keeper: Keeper) -> None:
    """fdatasync beside the loop: a slow disk must not be felt in a keystroke."""
    keeper.sync_due = 0.0
    files = keeper.log.sync_targets()
    if not files:
        return
    end = keeper.sync_end = keeper.log.end
    keeper.syncing = True

    def sync() -> None:
        try:
            for fd in files:
                os.fdatasync(fd)
            keeper.log.durable = max(keeper.log.durable, end)
        except OSError:
            pass  # a disk that refuses: durable stays where it was, and says so
        finally:
            for fd in files:
                os.close(fd)
            keeper.syncing = False
            try:
                os.write(keeper.sync_write, b"s")
            except OSError:
                pass

    _thread.start_new_thread(sync, ())
