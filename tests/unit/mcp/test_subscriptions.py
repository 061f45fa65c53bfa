"""Word of changes, as the host comes and goes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._async.host import AsyncHost
from holdfast.client._io import async_socket
from holdfast.mcp import resources, subscriptions
from holdfast.mcp.agent import Agent
from holdfast.model.errors import HoldfastError


class Flapping:
    """A host that is gone at every other question, and whose session writes on meanwhile."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.end = 100

    async def call(self, op: str, **request: Any) -> Any:
        self.asked.append((op, request.get("start")))
        self.end += 10
        if op == "status":
            return {"output": {"end": 100}}
        if len([a for a in self.asked if a[0] == "wait"]) < 2000:
            raise HoldfastError("host_gone", "the host is gone", "")
        return {"event": "exit", "offset": self.end}


async def test_a_watcher_outlives_any_number_of_hosts_and_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "_PAUSE_S", 0.0)
    host, told = Flapping(), []

    async def tell(uri: str) -> None:
        told.append(uri)

    agent: Any = type("Agent", (), {"host": host})()
    uri = resources.of_session("shell", "log")
    await subscriptions.watch(agent, uri, tell)
    assert told == [uri]
    assert {begin for op, begin in host.asked if op == "wait"} == {100}, "what came meanwhile is not missed"


async def test_who_listens_never_wakes_a_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(subscriptions, "_PAUSE_S", 0.0)
    host = AsyncHost(str(tmp_path / "home"))
    agent = Agent(host, {"id": "op_1", "name": "bot"})
    tries = 0

    async def tell() -> None:
        raise AssertionError("there is nobody to tell of anything")

    def gone(*args: object) -> None:
        nonlocal tries
        tries += 1

    monkeypatch.setattr(async_socket, "start_host", gone)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await subscriptions.watch_list(agent, "a mark", tell)
    assert tries == 0
    agent.close()
