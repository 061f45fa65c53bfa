"""Processes whose end ends a hold: the kernel tells of it through a descriptor of the very process."""

from __future__ import annotations

import os
import select

from ...model.sessions.controls import Refused
from ...system import process_tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    Named = tuple[int, int]  # pid and start time, as the host read them


class Processes:
    """What is watched, at most one for each hold; `fds` gives the pid of each descriptor."""

    __slots__ = ("_poll", "fds")

    def __init__(self, poll: select.epoll) -> None:
        self._poll = poll
        self.fds: dict[int, int] = {}

    def watch(self, named: Named | None) -> int:
        """Its pid, watched from now on; 0 where none is named. One that has ended holds nothing."""
        if named is None:
            return 0
        pid, started = named
        if pid in self.fds.values():
            return pid
        try:
            fd = os.pidfd_open(pid)
        except OSError as e:
            if isinstance(e, ProcessLookupError):
                raise _ended() from None
            return 0  # no descriptor left, or a kernel without: then time decides
        seen = process_tree.read_stat(
            pid
        )  # read while the descriptor stands for it: the number is not another's by now
        if seen is None or seen.started != started or seen.state in "ZX":
            os.close(fd)
            raise _ended()
        self.fds[fd] = pid
        self._poll.register(fd, select.EPOLLIN)
        return pid

    def only(self, wanted: set[int]) -> None:
        """Stop watching what no hold is for."""
        for fd, pid in list(self.fds.items()):
            if pid not in wanted:
                self.ended(fd)

    def ended(self, fd: int) -> int:
        """The pid behind a descriptor that told, and no more is watched."""
        self._poll.unregister(fd)
        os.close(fd)
        return self.fds.pop(fd)


def _ended() -> Refused:
    return Refused("conflict", "the process that the controls would be held for has ended", "ask from one that lives")
