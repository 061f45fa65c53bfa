"""asyncio sockets for the async client: the same two classes as io_sync, awaited."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket

from ...model.errors import HoldfastError
from ...model.home import Home
from ...wire import host_requests
from ..admin.launch_host import may_start, start_host
from .blocking_socket import (
    _CONNECT_PAUSE_S,
    _CONNECT_TRIES,
    _RECV_BYTES,
    CLOSED_ON_EXEC,
    ONE_DESCRIPTOR,
    REPLY_BYTES,
    connect_socket,
    descriptor,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...wire.host_requests import Codec


class AsyncHostConnection:
    """One connection to the host: a request out, a reply and perhaps a descriptor back."""

    __slots__ = ("_decoder", "sock")

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._decoder = host_requests.Decoder()

    @classmethod
    async def connect(cls, home: Home, autostart: bool) -> AsyncHostConnection:
        started = False
        for _ in range(_CONNECT_TRIES):
            try:
                return cls(connect_socket(home))
            except (FileNotFoundError, ConnectionRefusedError):
                if not autostart:
                    break
                if not started:
                    await asyncio.to_thread(start_host, home)
                    started = True
                else:
                    await asyncio.sleep(_CONNECT_PAUSE_S)
            except OSError as e:
                raise HoldfastError("failed", f"cannot reach the host: {e.strerror}", "hold doctor") from None
        if started:
            raise HoldfastError("host_gone", "the host was started and does not answer", "try again, or hold doctor")
        raise HoldfastError("not_found", "no host is running here", "hold up starts it")

    @staticmethod
    async def back(home: Home, within_s: float | None) -> bool:
        """Whether to ask again: at once where the next connection starts a host, else when one serves in time."""
        if may_start():
            return True
        from ..wait_for_host import wait_for_host

        try:
            async with asyncio.timeout(within_s):
                await wait_for_host(home)
        except TimeoutError:
            return False
        return True

    def stale(self) -> bool:
        """Whether the host closed its end while this connection was resting."""
        try:
            return self.sock.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    async def send(self, request: dict[str, object], codec: Codec = host_requests) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, codec.encode(request))

    async def receive(self, codec: Codec = host_requests) -> tuple[dict[str, object], int]:
        """The reply and its descriptor (-1: none)."""
        received = -1
        try:
            while True:
                try:
                    data, with_it, _, _ = self.sock.recvmsg(REPLY_BYTES, ONE_DESCRIPTOR, CLOSED_ON_EXEC)
                except BlockingIOError:
                    await _readable(self.sock)
                    continue
                if with_it:
                    received = descriptor(with_it, received)
                if not data:
                    raise ConnectionResetError("the host closed the connection")
                replies = self._decoder.feed(data, codec.parsed)
                if replies:
                    return replies[0], received
        except BaseException:  # the reply broke off, or nobody waits for it any more: its descriptor is nobody's
            if received >= 0:
                os.close(received)
            raise

    def close(self) -> None:
        self.sock.close()


class AsyncKeeperChannel:
    """A channel's bytes: the descriptor that the host passed on."""

    __slots__ = ("sock",)

    def __init__(self, fd: int) -> None:
        self.sock = socket.socket(fileno=fd)
        self.sock.setblocking(False)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def receive(self) -> bytes:
        try:
            return await asyncio.get_running_loop().sock_recv(self.sock, _RECV_BYTES)
        except ConnectionError:
            return b""

    def say(self, data: bytes) -> None:
        """A last word, for which nothing waits."""
        with contextlib.suppress(OSError):
            self.sock.send(data, socket.MSG_DONTWAIT)

    def close(self) -> None:
        self.sock.close()


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(sock, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sock)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
