"""Connections in the middle of durable work: answered on a thread, and told when others are at work as well."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.host.server import step_threads
from holdfast.host.server.step_threads import Lanes
from holdfast.wire import host_requests

Json = dict[str, Any]


def answer(request: Json, peer: object) -> Json | None:
    return None if request.get("op") == "other" else {"ok": request["n"]}


@asynccontextmanager
async def riding(found: Lanes) -> AsyncIterator[tuple[socket.socket, asyncio.Task[list[Json] | None]]]:
    """A client whose connection a lane has; the task ends when the lane gives it back."""
    client, server = socket.socketpair()
    client.settimeout(30)
    lane = asyncio.create_task(
        found.serve(server, None, host_requests.Decoder(found.read), [])  # type: ignore[arg-type]
    )
    try:
        yield client, lane
    finally:
        client.close()
        await asyncio.wait_for(lane, 30)
        server.close()


async def asked(client: socket.socket, n: int) -> Json:
    def ask() -> Json:
        client.sendall(host_requests.encode({"op": "work", "n": n}))
        return host_requests.Decoder().feed(client.recv(65536))[0]

    return await asyncio.to_thread(ask)


async def test_a_worker_alone_is_never_told_that_others_are_there() -> None:
    found = Lanes(lambda *_: True, answer)
    async with riding(found) as (one, _):
        assert [await asked(one, n) for n in range(20)] == [{"ok": n} for n in range(20)]


async def test_workers_that_take_turns_are_told_of_each_other_and_one_that_is_left_alone_is_not(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(step_threads, "_TOGETHER_S", 3600.0)
    found = Lanes(lambda *_: True, answer)
    async with riding(found) as (one, _), riding(found) as (two, _):
        assert "crowded" not in await asked(one, 1)
        for _ in range(3):
            assert (await asked(two, 2))["crowded"]
            assert (await asked(one, 1))["crowded"]
        assert "crowded" not in await asked(one, 1)  # the other one rests, with its connection open
        monkeypatch.setattr(step_threads, "_TOGETHER_S", 0.0)
        assert "crowded" not in await asked(two, 2)  # it comes back after a while: they are not at work together


async def test_what_is_not_for_a_lane_is_given_back_to_the_loop() -> None:
    found = Lanes(lambda *_: True, answer)
    async with riding(found) as (one, lane):
        await asked(one, 1)
        one.sendall(host_requests.encode({"op": "other"}))
        assert await asyncio.wait_for(asyncio.shield(lane), 30) == [{"op": "other"}]
