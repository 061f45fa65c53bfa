"""Word that a host serves a home again, for one who listens to it and does not wake it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import time

from ..model.home import Home
from ..system import inotify
from ._io.blocking_socket import connect_socket

_FIRST_S, _MOST_S = 1.0, 60.0  # between two tries; twice as long after each, where the kernel has no word of files


async def wait_for_host(home: Home) -> None:
    """Until one is there. The kernel tells of its socket. Where it cannot (nobody has a watch left, the home is gone or
    on another machine's disk) it is tried now and then, and where it can, hardly ever."""
    folder = -1
    with contextlib.suppress(OSError):
        folder = inotify.watch(home.path)
    pause_s = _FIRST_S if folder < 0 else _MOST_S
    try:
        while not _there(home):  # looked at after the watch was set: it falls in neither gap
            await _stirred(folder, pause_s)
            pause_s = min(2 * pause_s, _MOST_S)
    finally:
        if folder >= 0:
            os.close(folder)


def _there(home: Home) -> bool:
    try:
        connect_socket(home).close()
    except OSError:
        return False
    return True


def wait_for_host_blocking(home: Home, within_s: float | None) -> bool:
    """The same on this thread; whether one came in time."""
    deadline = None if within_s is None else time.monotonic() + within_s
    folder = -1
    with contextlib.suppress(OSError):
        folder = inotify.watch(home.path)
    pause_s = _FIRST_S if folder < 0 else _MOST_S
    try:
        while not _there(home):
            left_s = pause_s if deadline is None else min(pause_s, deadline - time.monotonic())
            if left_s <= 0:
                return False
            select.select([folder] if folder >= 0 else [], [], [], left_s)
            if folder >= 0:
                inotify.drain(folder)
            pause_s = min(2 * pause_s, _MOST_S)
    finally:
        if folder >= 0:
            os.close(folder)
    return True


async def _stirred(folder: int, within_s: float) -> None:
    """Until something happens to a file there, or the time is up."""
    if folder < 0:
        await asyncio.sleep(within_s)
        return
    loop, stirred = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(folder, stirred.set)
    try:
        async with asyncio.timeout(within_s):
            await stirred.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(folder)
    inotify.drain(folder)
