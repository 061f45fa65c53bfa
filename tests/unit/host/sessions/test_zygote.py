"""Asking for keepers faster than they can be had."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.host.sessions.zygote import Zygote
from holdfast.model.home import Home
from tests.crash.test_handed_start import spare_of
from tests.support.home import until_async

STARTS = 400  # more than a socket's queue holds


@pytest.fixture
def zygote(tmp_path: Path) -> Iterator[Zygote]:
    home = Home(str(tmp_path / "home"))
    os.makedirs(home.roles)
    made = Zygote(home.roles)
    yield made
    made.stop()


async def test_a_queue_that_is_full_is_waited_for_and_its_zygote_lives(zygote: Zygote, tmp_path: Path) -> None:
    await zygote.start()
    pid = zygote.pid
    assert pid is not None
    spare = await asyncio.to_thread(spare_of, pid)
    os.kill(spare, signal.SIGSTOP)
    asked = [asyncio.create_task(zygote.keeper(str(tmp_path / "none"), "terminal")) for _ in range(STARTS)]
    for _ in range(100):  # each that finds room is handed over at its first turn
        await asyncio.sleep(0)
    waiting = [task for task in asked if not task.done()]
    assert 0 < len(waiting) < STARTS
    os.kill(spare, signal.SIGCONT)
    await until_async(lambda: all(task.done() for task in asked), timeout=60)
    for task in asked:
        task.result().close()
    assert zygote.pid == pid
