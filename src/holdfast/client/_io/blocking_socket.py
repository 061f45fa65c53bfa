"""Blocking sockets for the sync client. Its twin for asyncio is io_async; the client's logic knows neither."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time

from ...model.errors import HoldfastError
from ...model.home import Home
from ...system import owner_trust
from ...system.brief_poll import FLUSHED_S, Arrival
from ...wire import host_requests
from ...wire.socket_address import reachable
from ..admin.launch_host import may_start, start_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...wire.host_requests import Codec

_RECV_BYTES = 1 << 18
REPLY_BYTES = 1 << 16  # most replies are small, and room for more would be asked of the system for each of them
ONE_DESCRIPTOR = socket.CMSG_SPACE(4)
CLOSED_ON_EXEC = int(socket.MSG_CMSG_CLOEXEC)  # from its first moment on: another thread may fork in the second
_CONNECT_TRIES = 50  # a daemon that is just being replaced is back within a second
_CONNECT_PAUSE_S = 0.02


def connect_socket(home: Home) -> socket.socket:
    """To the host of a home that is the caller's alone. What is sent over it (an environment, a proof) is for no other
    user, whoever replaced the socket between the look and the connection."""
    owner_trust.check_home(home.path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = -1
    try:
        address, folder = reachable(home.socket)
        sock.connect(address)
        owner_trust.check_server(sock, home.socket)
    except BaseException:
        sock.close()
        raise
    finally:
        if folder >= 0:
            os.close(folder)
    return sock


def descriptor(with_it: list[tuple[int, int, bytes]], before: int) -> int:
    """The one that came with these bytes; one that came before it for the same reply is not wanted."""
    if before >= 0:
        os.close(before)
    return int.from_bytes(with_it[0][2][:4], sys.byteorder)


class HostConnection:
    """One connection to the host: a request out, a reply and perhaps a descriptor back."""

    __slots__ = ("_alone", "_arrival", "_decoder", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._decoder = host_requests.Decoder()
        self._arrival = Arrival(sock, FLUSHED_S)
        self._alone = True  # the host is at work for nobody else

    @classmethod
    def connect(cls, home: Home, autostart: bool) -> HostConnection:
        started = False
        for _ in range(_CONNECT_TRIES):
            try:
                return cls(connect_socket(home))
            except (FileNotFoundError, ConnectionRefusedError):
                if not autostart:
                    break
                if not started:
                    start_host(home)
                    started = True
                else:
                    time.sleep(_CONNECT_PAUSE_S)
            except OSError as e:
                raise HoldfastError("failed", f"cannot reach the host: {e.strerror}", "hold doctor") from None
        if started:
            raise HoldfastError("host_gone", "the host was started and does not answer", "try again, or hold doctor")
        raise HoldfastError("not_found", "no host is running here", "hold up starts it")

    @staticmethod
    def back(home: Home, within_s: float | None) -> bool:
        """Whether to ask again: at once where the next connection starts a host, else when one serves in time."""
        if may_start():
            return True
        from ..wait_for_host import wait_for_host_blocking

        return wait_for_host_blocking(home, within_s)

    def stale(self) -> bool:
        """Whether the host closed its end while this connection was resting."""
        try:
            return self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def send(self, request: dict[str, object], codec: Codec = host_requests) -> None:
        self.sock.sendall(codec.encode(request))

    def receive(self, codec: Codec = host_requests) -> tuple[dict[str, object], int]:
        """The reply and its descriptor (-1: none)."""
        received = -1
        wait = self._arrival.wait_soon if codec is not host_requests and self._alone else self._arrival.wait
        try:
            while True:
                if not wait(self.sock.gettimeout()):
                    raise TimeoutError("the host did not answer")
                data, with_it, _, _ = self.sock.recvmsg(REPLY_BYTES, ONE_DESCRIPTOR, CLOSED_ON_EXEC)
                if with_it:
                    received = descriptor(with_it, received)
                if not data:
                    raise ConnectionResetError("the host closed the connection")
                replies = self._decoder.feed(data, codec.parsed)
                if replies:
                    self._alone = "crowded" not in replies[0]
                    return replies[0], received
        except BaseException:  # the reply broke off: its descriptor is nobody's
            if received >= 0:
                os.close(received)
            raise

    def close(self) -> None:
        self.sock.close()


class KeeperChannel:
    """A channel's bytes: the descriptor that the host passed on."""

    __slots__ = ("sock",)

    def __init__(self, fd: int) -> None:
        self.sock = socket.socket(fileno=fd)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self) -> bytes:
        try:
            return self.sock.recv(_RECV_BYTES)
        except ConnectionError:
            return b""

    def say(self, data: bytes) -> None:
        """A last word, for which nothing waits."""
        with contextlib.suppress(OSError):
            self.sock.send(data, socket.MSG_DONTWAIT)

    def close(self) -> None:
        self.sock.close()
