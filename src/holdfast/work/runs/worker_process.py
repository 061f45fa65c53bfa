"""Which process a worker is. Its name is for people, and another process may have the same."""

from __future__ import annotations

from typing import NamedTuple

from ...model.errors import invalid
from ...model.work.effects import check_word


class Process(NamedTuple):
    """`id` is a number of the process's own making, the rest is how the kernel of its machine knows it."""

    id: str
    place: str  # system.here; empty where it is not known
    pid: int
    started: int


def check_process(process: object) -> Process | None:
    """A process as its client tells it; None: a command's, which ends at once."""
    if process is None:
        return None
    if not isinstance(process, dict) or process.keys() != set(Process._fields):
        raise invalid("a worker's process is its id, place, pid and start", "upgrade the client")
    if not all(type(process[n]) is int and 0 <= process[n] < 1 << 62 for n in ("pid", "started")):
        raise invalid("a process has a pid and a start", "upgrade the client")
    place = process["place"] and check_word("a place", process["place"])
    return Process(check_word("a process", process["id"]), place, process["pid"], process["started"])
