"""The out-of-band record of a command that ended: what its shell wrote beside the source, and how to read it."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

# `holdfast-exec 1 TOKEN CODE PID`, the directory, `end TOKEN`. The directory's bytes may be anything, newlines too, so
# nothing about it is parsed; the token makes the lines around it unlike anything else. Shells append: cutting off what
# is in a file costs milliseconds on ext4. So other lines, or a record cut short by Ctrl-C, may stand before it.
_HEAD = re.compile(rb"([0-9]{1,3}) ([0-9]{1,10})\n")
_TAIL = re.compile(rb"\nend ([0-9a-f]{32})\n\Z")


_TAIL_BYTES = 64 << 10  # the record is the last thing in its file; a folder's name has at most 4 KB


def read_record(path: str) -> Record | None:
    """The record in `path`. Whoever runs in an isolated shell may have put anything there: nothing is followed,
    nothing waited for, and only the end is read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return None
        return parse_record(os.pread(fd, _TAIL_BYTES, max(0, about.st_size - _TAIL_BYTES)))
    except OSError:
        return None
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class Record:
    """How a command ended, in its shell's own words. `cwd` is None where the shell could not say."""

    token: str
    exit_code: int
    pid: int
    cwd: bytes | None


def parse_record(data: bytes) -> Record | None:
    """None while the shell has not written all of it."""
    tail = _TAIL.search(data)
    if tail is None:
        return None
    opening = b"holdfast-exec 1 " + tail[1] + b" "
    at = data.rfind(opening)
    head = _HEAD.match(data, at + len(opening)) if at >= 0 else None
    if head is None or head.end() > tail.start() + 1:
        return None
    return Record(tail[1].decode(), int(head[1]), int(head[2]), data[head.end() : tail.start()] or None)
