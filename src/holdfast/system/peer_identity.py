"""Who is at the other end of a unix socket, by the kernel's word, and which processes stand above it."""

from __future__ import annotations

import os
import socket
import struct

from .process_tree import Stat, read_stat

_SO_PEERPIDFD = 77  # Linux 6.5: a descriptor of the very process, whatever becomes of its number
_ANCESTORS_MAX = 256  # a chain of parents longer than this is nobody's shell
_WALKS_MAX = 5  # parents can end while they are being read: then it is walked again
_ENVIRON_BYTES_MAX = 4 << 20  # the kernel's own bound for arguments and environment is about that


class Unknown(Exception):
    """The peer cannot be said to be anyone: it ended, or what is known of it does not fit together."""


def credentials(sock: socket.socket) -> tuple[int, int]:
    """(pid, uid) of the process that connected."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", raw)
    return pid, uid


def pidfd(sock: socket.socket) -> int:
    """A descriptor of the process that connected, -1 where the kernel has none to give."""
    try:
        return sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError:
        return -1


def ancestry(sock: socket.socket) -> list[Stat]:
    """The peer and its parents, nearest first, read while the peer was provably the same process."""
    pid, _ = credentials(sock)
    handle = pidfd(sock)
    try:
        if pid <= 0:
            raise Unknown("it is in another world of process numbers")
        for _ in range(_WALKS_MAX):
            first = read_stat(pid)
            if first is None or first.state in "ZX" or not _same(handle, pid):
                raise Unknown("it has ended")
            line = _walk(first)
            again = read_stat(pid)
            if line is not None and again is not None and again.started == first.started and _same(handle, pid):
                return line
        raise Unknown("its parents change faster than they can be read")
    finally:
        if handle >= 0:
            os.close(handle)


def _walk(first: Stat) -> list[Stat] | None:
    """Up to the first process; None where a parent went away in between."""
    line = [first]
    while line[-1].ppid > 0 and len(line) < _ANCESTORS_MAX:
        above = read_stat(line[-1].ppid)
        if above is None:
            return None
        below = read_stat(line[-1].pid)  # read again: it still had this parent when the parent was read
        if below is None or below.ppid != above.pid:
            return None
        line.append(above)
    return line


def _same(handle: int, pid: int) -> bool:
    """Whether the descriptor's process lives and still has this number (always, where there is no descriptor)."""
    if handle < 0:
        return True
    try:
        with open(f"/proc/self/fdinfo/{handle}", "rb") as f:
            for row in f:
                if row.startswith(b"Pid:"):
                    return int(row.split()[1]) == pid
    except (OSError, ValueError, IndexError):
        pass
    return False


def environment(pid: int, names: tuple[bytes, ...]) -> dict[bytes, bytes]:
    """Some variables a process was started with, as far as they can be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            rows = f.read(_ENVIRON_BYTES_MAX).split(b"\0")
    except OSError:
        return {}
    pairs = (row.partition(b"=") for row in rows)
    return {name: value for name, _, value in pairs if name in names}
