"""Output to the disk about once a second, beside the loop."""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .keeper import Keeper


def start_sync(keeper: Keeper) -> None:
    """fdatasync beside the loop: a slow disk must not be felt in a keystroke."""
    out, idx = keeper.log.sync_targets()
    if out < 0:
        return
    end = keeper.log.end
    keeper.syncing = True

    def sync() -> None:
        try:
            os.fdatasync(out)
            os.fdatasync(idx)
            keeper.log.durable = max(keeper.log.durable, end)
        except OSError:
            pass  # a disk that refuses: durable stays where it was, and says so
        finally:
            os.close(out)
            os.close(idx)
            keeper.syncing = False
            try:
                os.write(keeper.sync_write, b"s")
            except OSError:
                pass

    _thread.start_new_thread(sync, ())
