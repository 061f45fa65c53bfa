"""This process as others on the machine can look it up: whether it is still there, they ask the kernel."""

from __future__ import annotations

import os

from .kernel import start_time
from .process_tree import read_stat


def place() -> str:
    """This boot of this machine and the process numbers in use here; empty where the kernel does not tell.

    Of processes in another place nothing can be known: they may be on another machine, or from before the last boot.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f"{f.read().strip()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def identity() -> tuple[str, int, int]:
    """(place, pid, start) of this process."""
    pid = os.getpid()
    started = start_time(pid)
    return place() if started else "", pid, started


def gone(pid: int, started: int) -> bool:
    """Whether a process of this place has ended. What cannot be looked at is not said to be gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass  # another user's: it is there
    seen = read_stat(pid)
    return seen is not None and (seen.state in "ZX" or seen.started != started)
