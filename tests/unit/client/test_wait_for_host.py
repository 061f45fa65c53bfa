"""Waiting for a host that is away: the kernel tells of it, and where it cannot, there are ever fewer tries."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.client import wait_for_host
from holdfast.host.server.connection import listen
from holdfast.model.home import Home
from tests.support.home import until_async


class Tries:
    """How often the socket was tried."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, self._there = 0, wait_for_host._there
        monkeypatch.setattr(wait_for_host, "_there", self)

    def __call__(self, home: Home) -> bool:
        self.count += 1
        return self._there(home)


async def test_a_host_that_comes_is_told_by_the_kernel_and_not_tried_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_for_host, "_MOST_S", 3600.0)  # so that no try of its own can find it
    tries, home = Tries(monkeypatch), Home(str(tmp_path))
    waiting = asyncio.ensure_future(wait_for_host.wait_for_host(home))
    await until_async(lambda: tries.count == 1)
    sock = listen(home.socket)
    try:
        await asyncio.wait_for(waiting, 60)
    finally:
        sock.close()
    assert 2 <= tries.count <= 4, "once before, and for each thing that happened in the home"


async def test_without_word_from_the_kernel_each_pause_is_twice_as_long_up_to_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, pauses = Home(str(tmp_path / "gone")), list[float]()

    async def pause(folder: int, within_s: float) -> None:
        assert folder == -1
        pauses.append(within_s)
        if len(pauses) == 8:
            raise asyncio.CancelledError

    monkeypatch.setattr(wait_for_host, "_stirred", pause)
    with pytest.raises(asyncio.CancelledError):
        await wait_for_host.wait_for_host(home)
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


async def test_a_host_that_is_there_is_not_waited_for(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    sock = listen(home.socket)
    try:
        await asyncio.wait_for(wait_for_host.wait_for_host(home), 60)
    finally:
        sock.close()
