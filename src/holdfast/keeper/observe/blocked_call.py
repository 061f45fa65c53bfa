"""Which descriptors a blocked system call waits for, and whether the terminal is among them."""

from __future__ import annotations

import os
import struct

from ...system.process_tree import read_small
from .syscall_names import NAMES

_POLL_IN = 0x1 | 0x40  # POLLIN, POLLRDNORM; epoll uses the same bits
_POLLFDS_MAX = 4096  # entries of one poll() read from the program's memory: 32 KB
_FDSET_BITS_MAX = 65536  # descriptors of one select(): 8 KB a set, 64 times what the C library's type holds
_EPOLL_BYTES_MAX = 256 << 10  # about 3,000 descriptors of one epoll at 85 bytes a line
_EPOLL_DEPTH_MAX = 2  # an epoll inside an epoll is used, one more level is not
_TTY_ALIAS = os.makedev(5, 0)  # /dev/tty: whichever terminal controls the process

# The argument that holds the timeout, and its form: none at all, milliseconds, or a pointer to two longs of
# seconds and a fraction of this many parts per millisecond.
_MS, _NS, _US = 0, 1_000_000, 1_000
_TIMEOUTS = {
    "poll": (2, _MS),
    "ppoll": (2, _NS),
    "select": (4, _US),
    "pselect6": (4, _NS),
    "epoll_wait": (3, _MS),
    "epoll_pwait": (3, _MS),
    "epoll_pwait2": (3, _NS),
}


class Tty:
    """The terminal being asked about."""

    __slots__ = ("device", "foreground", "path", "read_timeout", "session")

    def __init__(self, path: str) -> None:
        self.path = path
        self.device: tuple[int, int] | None = None  # (st_dev, st_ino) of the slave, where it could be opened
        self.foreground = 0
        self.session = 0
        self.read_timeout: int | None = None  # ms after which a read() gives up; None: it waits for ever


class Wait:
    """What a blocked thread waits for. `timeout` is milliseconds, "none", or None where nothing is known."""

    __slots__ = ("count", "name", "on_tty", "timeout", "watched")

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.on_tty: bool | None = None if name is None else False
        self.timeout: int | str | None = None
        self.watched: int | None = None  # descriptors that can end the wait
        self.count: int | None = None  # bytes asked for by a read()


def resolve(pid: int, name: str | None, args: list[int], tty: Tty, controls: bool) -> Wait:
    """Follow the call's arguments to the descriptors it waits for. What cannot be read is None."""
    wait = Wait(name)
    if name is None:
        if args and NAMES:
            wait.on_tty = False  # a call of this machine that is none of those in the table: not a wait to read
        return wait
    memory = _Memory(pid)
    try:
        if name == "restart_syscall":
            _resume(pid, args, tty, controls, wait, memory)
        elif name in ("read", "readv"):
            wait.on_tty = _is_tty(pid, args[0], tty, controls)
            wait.watched = 1
            wait.timeout = "none" if tty.read_timeout is None else tty.read_timeout
            wait.count = args[2] if name == "read" else None
        elif name in _TIMEOUTS:
            readable, wait.watched = _watched(pid, name, args, memory)
            wait.on_tty = _any_is_tty(pid, readable, tty, controls)
            wait.timeout = _timeout(name, args, memory)
        elif name == "io_uring_enter":
            wait.on_tty = None  # the kernel does not tell which descriptors a ring waits for
    except PermissionError:
        wait.on_tty = None
    except (OSError, ValueError, struct.error):
        wait.on_tty = False  # the process ended, or moved on, while it was being looked at
    finally:
        memory.close()
    return wait


def _resume(pid: int, args: list[int], tty: Tty, controls: bool, wait: Wait, memory: _Memory) -> None:
    """A poll() that was stopped and continued goes on under another number, with its arguments in place.

    Sleeps and futexes go on that way too. Those pass no small count of well-formed entries, so what reads as
    a poll() of the terminal was one.
    """
    if not 0 < args[1] <= _POLLFDS_MAX:
        return
    entries = list(struct.iter_unpack("ihh", memory.read(args[0], args[1] * 8)))
    if all(-1 <= fd < 1 << 20 and 0 <= events < 1 << 14 for fd, events, _ in entries):
        readable, watched = _watched(pid, "poll", args, memory)
        if _any_is_tty(pid, readable, tty, controls):
            wait.name, wait.on_tty, wait.watched = "poll", True, watched
            wait.timeout = _timeout("poll", args, memory)


def _watched(pid: int, name: str, args: list[int], memory: _Memory) -> tuple[list[int], int]:
    """The descriptors waited on for reading, and how many there are for anything."""
    if name in ("poll", "ppoll"):
        entries = struct.iter_unpack("ihh", memory.read(args[0], min(args[1], _POLLFDS_MAX) * 8))
        pairs = [(fd, events) for fd, events, _ in entries if fd >= 0]
        return [fd for fd, events in pairs if events & _POLL_IN], len(pairs)
    if name in ("select", "pselect6"):
        bits = min(args[0] & 0xFFFFFFFF, _FDSET_BITS_MAX)
        sets = [_fd_set(memory, pointer, bits) for pointer in args[1:4]]
        return sorted(sets[0]), len(sets[0] | sets[1] | sets[2])
    return _epoll(pid, args[0] & 0xFFFFFFFF)


def _fd_set(memory: _Memory, pointer: int, bits: int) -> set[int]:
    if not pointer or not bits:
        return set()
    # The kernel reads whole longs, so the memory behind the last bit is the program's own as well.
    mask = int.from_bytes(memory.read(pointer, (bits + 63) // 64 * 8), "little") & ((1 << bits) - 1)
    found = set()
    while mask:
        lowest = mask & -mask
        found.add(lowest.bit_length() - 1)
        mask ^= lowest
    return found


def _epoll(pid: int, fd: int) -> tuple[list[int], int]:
    """An epoll's descriptors; a line reads `tfd:  0 events:  19 data: ...`, the events in hexadecimal."""
    readable, count = [], 0
    for line in read_small(f"/proc/{pid}/fdinfo/{fd}", _EPOLL_BYTES_MAX).splitlines():
        if line.startswith(b"tfd:"):
            fields = line.split()
            count += 1
            if int(fields[3], 16) & _POLL_IN:
                readable.append(int(fields[1]))
    return readable, count


def _timeout(name: str, args: list[int], memory: _Memory) -> int | str:
    index, form = _TIMEOUTS[name]
    value = args[index]
    if form == _MS:
        signed = struct.unpack("i", struct.pack("I", value & 0xFFFFFFFF))[0]
        return "none" if signed < 0 else int(signed)
    if value == 0:
        return "none"
    seconds, fraction = struct.unpack("qq", memory.read(value, 16))
    return int(seconds * 1000 + fraction // form)


class _Memory:
    """A process's memory, opened when first needed: one call may point to several places in it."""

    __slots__ = ("_fd", "_pid")

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._fd = -1

    def read(self, address: int, size: int) -> bytes:
        if self._fd < 0:
            self._fd = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(self._fd, size, address)
        except OverflowError as error:
            raise ValueError("an address that no program has") from error
        if len(data) < size:
            raise ValueError("the memory ends before the array does")
        return data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def _any_is_tty(pid: int, fds: list[int], tty: Tty, controls: bool, depth: int = 1) -> bool | None:
    unknown = False
    for fd in fds:
        found = _is_tty(pid, fd, tty, controls, depth)
        if found:
            return True
        unknown = unknown or found is None
    return None if unknown else False


def _is_tty(pid: int, fd: int, tty: Tty, controls: bool, depth: int = 1) -> bool | None:
    """Whether a process's descriptor is this terminal, under any of its names."""
    path = f"/proc/{pid}/fd/{fd & 0xFFFFFFFF}"
    try:
        link = os.readlink(path)
    except PermissionError:
        return None
    except OSError:
        return False
    if link == "anon_inode:[eventpoll]" and depth < _EPOLL_DEPTH_MAX:
        return _any_is_tty(pid, _epoll(pid, fd)[0], tty, controls, depth + 1)
    # Only what may be a terminal is looked at more closely: a stat of a dead network file would hang.
    if link.rpartition("/")[2] not in (tty.path.rpartition("/")[2], "tty", "console"):
        return False
    try:
        where = os.stat(path)
    except OSError:
        return False
    if where.st_rdev == _TTY_ALIAS:
        return controls
    return link == tty.path if tty.device is None else (where.st_dev, where.st_ino) == tty.device
