"""The host's socket under odd clients: half requests, haste, nonsense, and leaving at the worst moment."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from holdfast.host.server.connection import Peer, Reply, Server, listen
from holdfast.wire import host_requests
from tests.support.home import until_async

Json = dict[str, Any]


class Place:
    """A server whose `wait` lasts until it is let go, and whose `fd` gives a descriptor at that moment."""

    def __init__(self, path: str) -> None:
        self.path, self.go, self.running, self.given = path, asyncio.Event(), 0, list[int]()
        self.server = Server(listen(path), self.handle, lambda peer: None)
        self.serving = asyncio.create_task(self.server.serve())

    async def handle(self, request: Json, peer: Peer) -> Reply:
        if request["op"] == "ping":
            return Reply({"ok": request.get("n")})
        self.running += 1
        try:
            await self.go.wait()
        finally:
            self.running -= 1
        self.given.append(os.open(os.devnull, os.O_RDONLY))
        return Reply({"ok": None}, self.given[-1])

    async def client(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self.path)
        return sock


@pytest_asyncio.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(str(tmp_path / "s"))
    yield made
    made.serving.cancel()
    made.server.close()
    await asyncio.sleep(0)


async def send(sock: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(sock, data)


async def answers(sock: socket.socket, count: int) -> list[Json]:
    decoder, found = host_requests.Decoder(), list[Json]()
    while len(found) < count:
        data = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sock, 65536), 30)
        assert data
        found += decoder.feed(data)
    return found


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[1]",
        b'{"op":"ping","n":NaN}',
        b'{"op":"ping","n":-Infinity}',
        b'{"op":"ping","n":1e999}',
        b'{"op":"ping","n":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b"\xff\xfe{}",
    ],
    ids=["cut", "list", "nan", "infinity", "huge", "deep", "not utf-8"],
)
async def test_nonsense_is_refused_and_ends_the_request_under_way(place: Place, body: bytes) -> None:
    with await place.client() as sock:
        await send(sock, host_requests.encode({"op": "wait"}))
        await until_async(lambda: place.running == 1, 30)
        await send(sock, framed(body))
        assert (await answers(sock, 1))[0]["error"]["code"] == "invalid"
        await until_async(lambda: place.running == 0, 30)


async def test_requests_that_pile_up_are_not_kept_without_end(place: Place) -> None:
    with await place.client() as sock:
        await send(sock, host_requests.encode({"op": "wait"}) + host_requests.encode({"op": "ping"}) * 1000)
        assert (await answers(sock, 1))[0]["error"]["code"] == "invalid"


async def test_a_little_haste_is_answered_in_order(place: Place) -> None:
    with await place.client() as sock:
        for n in range(50):
            await send(
                sock,
                host_requests.encode({"op": "ping", "n": 2 * n}) + host_requests.encode({"op": "ping", "n": 2 * n + 1}),
            )
            assert await answers(sock, 2) == [{"ok": 2 * n}, {"ok": 2 * n + 1}]


async def test_a_descriptor_that_nobody_takes_is_closed(place: Place) -> None:
    """The client leaves in the very moment in which its descriptor is made."""
    for _ in range(20):
        place.go.clear()
        sock = await place.client()
        await send(sock, host_requests.encode({"op": "wait"}))
        await until_async(lambda: place.running == 1, 30)
        place.go.set()
        sock.close()
        await until_async(lambda: place.running == 0, 30)
    await until_async(lambda: not [fd for fd in place.given if _is_null(fd)], 30)


def _is_null(fd: int) -> bool:
    try:
        return os.readlink(f"/proc/self/fd/{fd}") == os.devnull
    except OSError:
        return False


def test_what_is_sent_is_what_is_read() -> None:
    value = {"a": [1, 1.5, "\udcff", None, True]}
    assert host_requests.Decoder().feed(host_requests.encode(value)) == [json.loads(json.dumps(value))]
