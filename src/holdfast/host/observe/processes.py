"""Processes as /proc shows them. A pid that ended meanwhile is left out, never guessed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_COMMAND_BYTES_MAX = 4096  # of a command line shown to people; arguments alone may reach 6 MB
_ENVIRON_BYTES_MAX = 8 << 20  # above the kernel's own limit for arguments and environment together

_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk sleep",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "dead",
    "I": "idle",
    "P": "parked",
}


def processes(pids: Iterable[int]) -> list[dict[str, Any]]:
    """The session object's `processes`, in the order asked for."""
    found = []
    for pid in pids:
        try:
            name, fields = _stat(pid)
            command = _read(pid, "cmdline", _COMMAND_BYTES_MAX)
        except (OSError, IndexError, ValueError):
            continue
        words = command.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
        found.append(
            {
                "pid": pid,
                "ppid": int(fields[1]),
                "name": name,
                "command": words or f"[{name}]",  # zombies have no command line any more
                "state": _STATES.get(fields[0].decode(), fields[0].decode()),
                "cpu_s": (int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
                "rss": int(fields[21]) * _PAGE_BYTES,
            }
        )
    return found


def cwd(pid: int) -> str | None:
    """Its working directory; None where it is gone or not ours to see."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def start_ticks(pid: int) -> int | None:
    """When it began, in clock ticks since boot: with the pid it names one process for ever."""
    try:
        return int(_stat(pid)[1][19])
    except (OSError, IndexError, ValueError):
        return None


def start_time(pid: int) -> float | None:
    """When it began, as seconds since 1970 by today's clock (the kernel keeps the time since boot)."""
    ticks = start_ticks(pid)
    if ticks is None:
        return None
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / _TICKS_PER_S


def environ_has(pid: int, key: bytes, value: bytes) -> bool:
    """Whether the process was started with KEY=VALUE. False where it is gone or not ours to read."""
    try:
        environ = _read(pid, "environ", _ENVIRON_BYTES_MAX)
    except OSError:
        return False
    return b"\0" + key + b"=" + value + b"\0" in b"\0" + environ + b"\0"


def find_by_env(key: bytes, value: bytes) -> list[int]:
    """Every living process that was started with KEY=VALUE: the survivors of a session whose keeper died.

    A process can be missed where it replaced its environment, and a zombie has none; nothing is found wrongly
    unless a program sets the variable on purpose.
    """
    own = os.getpid()
    pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if pid != own and environ_has(pid, key, value)]


def _stat(pid: int) -> tuple[str, list[bytes]]:
    """Name, and the fields from the state on. The name may hold parentheses: it ends at the last one."""
    text = _read(pid, "stat", 4096)
    name, _, rest = text.partition(b"(")[2].rpartition(b")")
    return name.decode("utf-8", "replace"), rest.split()


def _read(pid: int, name: str, size: int) -> bytes:
    """Up to `size` bytes of a file of the process, read to the end: /proc hands out a page at a time."""
    with open(f"/proc/{pid}/{name}", "rb", buffering=0) as f:
        parts = []
        while size > 0 and (part := f.read(size)):
            parts.append(part)
            size -= len(part)
    return b"".join(parts)
