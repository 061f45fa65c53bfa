"""The web process is moved by one at a time, and where that fails everything is as before."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.host.web.web_process import Web
from holdfast.model.home import Home


class Moved(Web):
    """Its process is only counted."""

    def __init__(self, path: Path) -> None:
        super().__init__(Home(str(path)))
        self.starting = self.most = 0
        self.broken = False

    async def stop(self) -> None:
        await asyncio.sleep(0)

    async def _start(self, host: str, port: int) -> tuple[int, int]:
        if self.broken:
            raise BlockingIOError("no more processes")
        self.starting += 1
        self.most = max(self.most, self.starting)
        await asyncio.sleep(0)
        self.starting -= 1
        return 4242, port

    def _keep(self) -> None:
        """Nothing to look after."""


async def test_two_who_move_it_take_turns(tmp_path: Path) -> None:
    web = Moved(tmp_path)
    await asyncio.gather(
        web.use("127.0.0.1", 8001), web.use("127.0.0.1", 8002), web.forget(), web.use("127.0.0.1", 8003)
    )
    assert web.most == 1
    assert (web.about() or {})["url"] == "http://127.0.0.1:8003"


async def test_where_no_process_can_be_made_it_is_where_it_was(tmp_path: Path) -> None:
    web = Moved(tmp_path)
    web.broken = True
    with pytest.raises(BlockingIOError):
        await web.use("127.0.0.1", 8001)
    assert web.about() is None
    web.broken = False
    await web.use("127.0.0.1", 8001, "https://hold.example.org")
    web.broken = True
    with pytest.raises(BlockingIOError):
        await web.use("127.0.0.1", 8002)
    assert (web.about() or {})["url"] == "http://127.0.0.1:8001"
