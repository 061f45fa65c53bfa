"""The web port sends what a program prints at once: without TCP_NODELAY an echo waits for an acknowledgement."""

from __future__ import annotations

import asyncio
import socket

import pytest

from holdfast.console.server import bind


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_accepted_connection_does_not_wait_to_fill_packets(host: str) -> None:
    try:
        listening = bind(host, 0)
    except Exception as e:
        if host == "127.0.0.1":
            raise
        pytest.skip(f"no IPv6 here: {e}")
    assert asyncio.run(_accepted_has_nodelay(listening))


async def _accepted_has_nodelay(listening: socket.socket) -> bool:
    """As the web server accepts: by asyncio, from a socket that is handed to it."""
    found: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sock = writer.get_extra_info("socket")
        found.set_result(bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        writer.close()

    async with await asyncio.start_server(accepted, sock=listening):
        host, port = listening.getsockname()[:2]
        _, writer = await asyncio.open_connection(host, port)
        try:
            async with asyncio.timeout(10):
                return await found
        finally:
            writer.close()
