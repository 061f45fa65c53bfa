"""Word of changes, as the host comes and goes."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.mcp import resources, watching
from holdfast.model.errors import HoldfastError


class Flapping:
    """A host that is gone at every other question, and whose session writes on meanwhile."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.end = 100

    async def call(self, op: str, **request: Any) -> Any:
        self.asked.append((op, request.get("from")))
        self.end += 10
        if op == "status":
            return {"output": {"end": 100}}
        if len([a for a in self.asked if a[0] == "wait"]) < 2000:
            raise HoldfastError("host_gone", "the host is gone", "")
        return {"event": "exit", "offset": self.end}


async def test_a_watcher_outlives_any_number_of_hosts_and_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_PAUSE_S", 0.0)
    host, told = Flapping(), []

    async def tell(uri: str) -> None:
        told.append(uri)

    agent: Any = type("Agent", (), {"host": host})()
    uri = resources.of_session("shell", "log")
    await watching.watch(agent, uri, tell)
    assert told == [uri]
    assert {begin for op, begin in host.asked if op == "wait"} == {100}, "what came meanwhile is not missed"
