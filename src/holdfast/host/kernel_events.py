"""Waiting for the kernel's word: that a process ended (pidfd), that a file in a folder changed (inotify).

Arm first, then look, then wait: what happens between the look and the wait is waiting already, so nothing is lost.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from ..system import inotify, kernel

_REFUSED_S = 0.25  # between two looks where the kernel had no descriptor to give


class KernelEvents:
    """Descriptors that wake one waiter."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._folders: list[int] = []
        self._processes: dict[tuple[int, int], int] = {}
        self._happened = asyncio.Event()
        self._refused = 0

    def __enter__(self) -> KernelEvents:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for fd in (*self._folders, *self._processes.values()):
            self._loop.remove_reader(fd)
            os.close(fd)
        self._folders.clear()
        self._processes.clear()

    def folder(self, path: str) -> None:
        """A file in it is made, written and closed, moved or removed."""
        try:
            fd = inotify.watch(path, created=True)
        except OSError:
            self._refused += 1
            return
        self._folders.append(fd)
        self._loop.add_reader(fd, self._changed, fd)

    def ends_of(self, processes: Iterable[tuple[int, int]]) -> int:
        """One of these, (pid, start time), ends; those that were watched before and are not named are let go of. How
        many of them there are: one that is gone already is none."""
        wanted = set(processes)
        for gone in set(self._processes) - wanted:
            self._forget(gone)
        return sum(one in self._processes or self._watch(*one) for one in wanted)

    def _watch(self, pid: int, started: int) -> bool:
        """Whether it lives."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        except OSError:
            self._refused += 1
            return kernel.start_time(pid) == started
        if kernel.start_time(pid) != started:  # asked after the descriptor is there: the pid is that process's, or gone
            os.close(fd)
            return False
        self._processes[pid, started] = fd
        self._loop.add_reader(fd, self._ended, (pid, started))
        return True

    def _ended(self, one: tuple[int, int]) -> None:
        self._forget(one)
        self._happened.set()

    def _forget(self, one: tuple[int, int]) -> None:
        fd = self._processes.pop(one)
        self._loop.remove_reader(fd)
        os.close(fd)

    def _changed(self, fd: int) -> None:
        inotify.drain(fd)
        self._happened.set()

    async def wait(self, timeout: float | None = None, also: asyncio.Future[Any] | None = None) -> None:
        """Until one of them happened since the last wait, `also` is done, or the time is up."""
        if self._refused:
            timeout = _REFUSED_S if timeout is None else min(timeout, _REFUSED_S)
            self._refused = 0  # the next turn tries to watch again
        mine = self._loop.create_task(self._happened.wait())
        try:
            await asyncio.wait(
                {mine, also} if also is not None else {mine}, timeout=timeout, return_when="FIRST_COMPLETED"
            )
        finally:
            mine.cancel()
        self._happened.clear()
