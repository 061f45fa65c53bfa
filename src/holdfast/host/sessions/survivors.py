"""Ending what a lost session left behind: its processes have no keeper to end them, so the host does, by their mark."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from ...system import cgroup
from ..observe import session_view
from .session import Session

_AGAIN_S = 0.05  # between two looks: each reads the environment of every process
_KILL_S = 15.0  # past the grace time, for KILL to empty a large tree


async def end(session: Session, grace_s: float) -> None:
    """TERM, after the grace time KILL, again and again: one that forks meanwhile is found at the next look."""
    began = time.monotonic()
    told: set[int] = set()
    while left := await asyncio.to_thread(session_view.survivors_of, session):
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
        await asyncio.sleep(_AGAIN_S)
    # What its keeper would have removed with the last process.
    await asyncio.to_thread(cgroup.remove, cgroup.possible_leaves(session.id))


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass
