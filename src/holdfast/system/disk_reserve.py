"""Room on the home's disk that is kept for when there is none: a file that is given up to write something else.

Its first part is for the record of what was just done; the host acts no more until it is there again. The rest is for a
host that has to start on a full disk: without one nobody could make room with `hold prune`.
"""

from __future__ import annotations

import errno
import os

from ..model.errors import HoldfastError
from ..model.limits import RESERVE_BYTES, RESERVE_START_BYTES

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Reserve:
    """The file of one home. `held` is whether all of it is there, by this process's last look."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.held = False

    def keep(self) -> None:
        """Have all of it; raises `store_full` where that would leave no room for anything else."""
        before = _size(self._path)
        try:
            _allocate(self._path, RESERVE_BYTES)
            self.held = _is_room(self._path)
        except OSError as e:
            self.held = e.errno not in _FULL  # a file system that reserves nothing: the ledger tells when it is full
        if not self.held:
            _shrink(self._path, before)
            hint = "hold prune removes ended sessions; else free some space"
            raise HoldfastError("store_full", "the disk of this home is full: nothing was done", hint)

    def give_up(self) -> bool:
        """Give up the part for the record; whether there was any."""
        self.held = False
        had = _size(self._path) > RESERVE_START_BYTES
        _shrink(self._path, RESERVE_START_BYTES)
        return had


def room_to_start(path: str) -> None:
    """Where the disk has no room for a host to start, give all of it up."""
    if not _is_room(path):
        _shrink(path, 0)


def _is_room(path: str) -> bool:
    """Whether a host could start, beside what is there; asked by having it for a moment, because of quotas."""
    look = f"{path}.look"
    try:
        _allocate(look, RESERVE_START_BYTES)
        return True
    except OSError as e:
        return e.errno not in _FULL
    finally:
        _shrink(look, 0)


def _allocate(path: str, size: int) -> None:
    """A file of at least this size, whose blocks are its own."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _shrink(path: str, size: int) -> None:
    """To this size at most, and no file for none. A failed allocation can leave more than was there."""
    try:
        if not size:
            os.unlink(path)
        elif _size(path) > size:
            os.truncate(path, size)
    except OSError:
        pass
