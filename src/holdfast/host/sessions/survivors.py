"""Ending what a lost session left behind: its processes have no keeper to end them, so the host does, by their mark."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from ...system import cgroup, kernel
from ..kernel_events import KernelEvents
from ..observe import session_view
from .session import Session

_AGAIN_S = 1.0  # between two KILLs, for what forks as fast as it is killed; who dies is told by the kernel
_KILL_S = 15.0  # past the grace time, for KILL to empty a large tree


async def end(session: Session, grace_s: float) -> None:
    """TERM, after the grace time KILL, again and again: one that forks meanwhile is found at the next look."""
    began = time.monotonic()
    told: set[int] = set()
    with KernelEvents() as events:
        while left := await asyncio.to_thread(session_view.survivors_of, session):
            named = [(pid, kernel.start_time(pid)) for pid in left]
            events.ends_of(named)
            waited = time.monotonic() - began
            if waited > grace_s + _KILL_S:
                return
            for pid in left:
                if waited >= grace_s:
                    _send(pid, signal.SIGKILL)
                elif pid not in told:
                    _send(pid, signal.SIGTERM)
                    _send(pid, signal.SIGCONT)  # a stopped one hears TERM only when it runs
            told.update(left)
            await _all_ended(events, named, _AGAIN_S if waited >= grace_s else grace_s - waited)
    # What its keeper would have removed with the last process.
    await asyncio.to_thread(cgroup.remove, cgroup.possible_leaves(session.id))


async def _all_ended(events: KernelEvents, named: list[tuple[int, int]], within_s: float) -> None:
    """Until each of them is gone, or the time is up."""
    deadline = time.monotonic() + within_s
    while events.ends_of(named) and (left_s := deadline - time.monotonic()) > 0:
        await events.wait(left_s)


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
