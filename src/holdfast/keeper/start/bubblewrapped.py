"""A program inside bubblewrap: which processes around it are bubblewrap's own, and how it ended.

    keeper ── bwrap ── bwrap, pid 1 inside ── the program, pid 2 inside ── …

The outer one ends with the program's exit code as soon as the program does, and counts a signal as a shell would (128
and its number); the inner one stays until its namespace is empty. So the kernel itself is asked how the program ended,
through a descriptor that was opened while it ran; where that came too late, or the kernel cannot tell, the code is all
there is. Signals are for the program: a TERM to the outer one would end it with the wrong status and leave the rest.
"""

from __future__ import annotations

import os

from ...system import kernel, process_tree

_LOOK_FIRST_S, _LOOK_S_MAX = 0.002, 5.0  # bubblewrap takes some milliseconds to start it, and tells nobody
_PROGRAM = 2  # inside: pid 1 is bubblewrap's reaper, the first that it starts is the program


class Main:
    """The main program: what the keeper started, or what bubblewrap made of it."""

    __slots__ = ("_found", "_isolated", "_looks_s", "_pidfd", "_started", "due")

    def __init__(self, started: int, *, isolated: bool, now: float) -> None:
        self._started, self._isolated = started, isolated
        self._found = 0 if isolated else started
        self._pidfd, self._looks_s = -1, _LOOK_FIRST_S
        self.due = now + _LOOK_FIRST_S if isolated else 0.0  # when to look for it; 0: it is found, or given up

    def look(self, now: float) -> None:
        """Find the program soon after it began: from then on the kernel tells how it ends."""
        self._looks_s *= 2
        gone = self.pid != self._started or self._looks_s > _LOOK_S_MAX
        self.due = 0.0 if gone else now + self._looks_s

    def ending(self, code: int) -> int:
        """The program's own end, as `wait` has it (negative for a signal), given that of what the keeper started."""
        if self._pidfd < 0:
            return code
        status = kernel.status_of(self._pidfd)
        os.close(self._pidfd)
        self._pidfd, self.due = -1, 0.0
        return code if status is None else os.waitstatus_to_exitcode(status)

    @property
    def pid(self) -> int:
        """The program's own; bubblewrap's for the moment before it is there."""
        if not self._found:
            self._found = _program(self._started)
            if self._found:
                try:
                    self._pidfd = os.pidfd_open(self._found)
                except OSError:
                    pass  # over already
        return self._found or self._started

    def only(self, members: list[int]) -> list[int]:
        """Those of a tree that signals are for: bubblewrap's own two end when there is nothing left inside.

        They are our child, and its child or (after its death) ours; whatever else is inside has one of its own kind
        for a parent, or the inner one.
        """
        if not self._isolated or self.pid == self._started:
            return members
        around = {*process_tree.children(os.getpid()), *process_tree.children(self._started)}
        return [pid for pid in members if pid not in around]


def _program(outer: int) -> int:
    for reaper in process_tree.children(outer):
        for pid in process_tree.children(reaper):
            if process_tree.inner_pid(pid) == _PROGRAM:
                return pid
    return 0
