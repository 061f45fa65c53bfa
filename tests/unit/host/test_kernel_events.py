"""Waiting for the kernel's word: nothing that happens between a look and the wait is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from holdfast.host.kernel_events import KernelEvents
from holdfast.system import kernel

SOON_S = 20.0


def sleeping() -> tuple[subprocess.Popen[bytes], tuple[int, int]]:
    child = subprocess.Popen(["sleep", "1000"])
    return child, (child.pid, kernel.start_time(child.pid))


async def test_a_process_that_ends_before_the_wait_wakes_it() -> None:
    child, named = sleeping()
    with KernelEvents() as events:
        assert events.ends_of([named]) == 1
        child.kill()
        child.wait()
        await asyncio.wait_for(events.wait(), SOON_S)
        assert events.ends_of([named]) == 0


async def test_a_process_that_took_over_the_pid_is_not_waited_for() -> None:
    child, (pid, started) = sleeping()
    try:
        with KernelEvents() as events:
            assert events.ends_of([(pid, started - 1)]) == 0
    finally:
        child.kill()
        child.wait()


async def test_a_file_that_is_made_before_the_wait_wakes_it(tmp_path: Path) -> None:
    with KernelEvents() as events:
        events.folder(str(tmp_path))
        (tmp_path / "made").touch()
        await asyncio.wait_for(events.wait(), SOON_S)


async def test_what_happened_is_told_once(tmp_path: Path) -> None:
    with KernelEvents() as events:
        events.folder(str(tmp_path))
        (tmp_path / "made").touch()
        await asyncio.wait_for(events.wait(), SOON_S)
        await events.wait(0.0)  # the rest of that write
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(events.wait(), 0.05)


async def test_another_s_future_ends_the_wait() -> None:
    done = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(done.set_result, None)
    with KernelEvents() as events:
        await asyncio.wait_for(events.wait(None, done), SOON_S)


async def test_where_the_kernel_has_no_descriptor_the_living_are_still_told_from_the_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(pid: int, flags: int = 0) -> int:
        raise OSError(24, "Too many open files")

    child, named = sleeping()
    monkeypatch.setattr(os, "pidfd_open", refused)
    with KernelEvents() as events:
        assert events.ends_of([named]) == 1
        await asyncio.wait_for(events.wait(), SOON_S)  # looked at again
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert events.ends_of([named]) == 0


async def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    child, named = sleeping()
    with KernelEvents() as events:
        events.folder(str(tmp_path))
        events.ends_of([named])
        child.kill()
        child.wait()
        await events.wait(SOON_S)
    assert len(os.listdir("/proc/self/fd")) == before
