"""Open files of a session's processes, with offsets and locks, from the descriptors themselves."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Any, NamedTuple

# Descriptors listed in one answer. A shell has 4, a database a few hundred; at about 20 us each this bounds
# the answer to some 80 ms and 500 KB.
FILES_MAX = 4096
_LOCKS = {"READ": "read", "WRITE": "write", "RW": "write"}
# A lease is a wish to be told, not a lock; delegations belong to file servers.
_NOT_LOCKS = frozenset({"LEASE", "DELEG"})


class OpenFiles(NamedTuple):
    """The session object's `files`; `truncated` where there were more than FILES_MAX."""

    files: list[dict[str, Any]]
    truncated: bool


def open_files(pids: Iterable[int], limit: int = FILES_MAX) -> OpenFiles:
    """Files, pipes, sockets and terminals that are open.

    Descriptors with nothing behind them that a person would call open (epoll, eventfd, timers, pidfds) are
    left out. Pids that are gone, or not ours to see, have no files.
    """
    found: list[dict[str, Any]] = []
    for pid in pids:
        try:
            fds = sorted(map(int, os.listdir(f"/proc/{pid}/fd")))
        except OSError:
            continue
        for fd in fds:
            if len(found) >= limit:
                return OpenFiles(found, truncated=True)
            entry = _entry(pid, fd)
            if entry is not None:
                found.append(entry)
    return OpenFiles(found, truncated=False)


def _entry(pid: int, fd: int) -> dict[str, Any] | None:
    try:
        path = os.readlink(f"/proc/{pid}/fd/{fd}")
        kind = _kind(pid, fd, path)
        if kind is None:
            return None
        offset, lock = _position(pid, fd) if kind == "file" else (None, None)
    except OSError:
        return None  # closed meanwhile
    return {"pid": pid, "fd": fd, "path": path, "kind": kind, "offset": offset, "lock": lock}


def _kind(pid: int, fd: int, path: str) -> str | None:
    if path.startswith("socket:"):
        return "socket"
    if path.startswith("pipe:"):
        return "pipe"
    if not path.startswith("/"):
        return None
    if not path.startswith("/dev/"):
        return "pipe" if _is_fifo(pid, fd) else "file"
    name = path[5:]
    return "tty" if name.startswith(("pts/", "tty", "ptmx", "console")) else "file"


def _is_fifo(pid: int, fd: int) -> bool:
    """Whether it is a named pipe. `flags` would not say, and asking the file itself does not open it."""
    try:
        return stat.S_ISFIFO(os.stat(f"/proc/{pid}/fd/{fd}").st_mode)
    except OSError:
        return False


def _position(pid: int, fd: int) -> tuple[int | None, str | None]:
    """Offset, and the strongest lock taken through this very descriptor.

    fdinfo lists the locks of one open file (POSIX, flock and open-file-description alike), so nothing has to
    be matched by inode and owner as in /proc/locks, and a lock that is only waited for is not taken for held.
    """
    offset: int | None = None
    lock: str | None = None
    with open(f"/proc/{pid}/fdinfo/{fd}", "rb") as f:
        for line in f:
            if line.startswith(b"pos:"):
                offset = int(line[4:])
            elif line.startswith(b"lock:"):
                # lock:  1: POSIX  ADVISORY  WRITE 4242 08:01:1234 0 EOF
                words = line.decode("ascii", "replace").split()
                mode = _LOCKS.get(words[4]) if len(words) > 4 and words[2] not in _NOT_LOCKS else None
                lock = "write" if "write" in (mode, lock) else mode or lock
    return offset, lock
