"""Running in the foreground without a terminal: stdin goes in, output comes out, until the session ends."""

from __future__ import annotations

import os
import select
import socket
import sys

from ..client import talk
from ..client.terminal import QueryFilter
from ..model.limits import INPUT_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..client.sync import Host

_READ_BYTES = 1 << 18


def pass_through(host: Host, session: str, *, start: int = 0) -> None:
    """Copy both ways from offset `start` on; returns when the output has ended."""
    copy = _Copy(start)
    while not copy.done:
        _, fd = host.call_fd("open", session=session, via="cli")
        with socket.socket(fileno=fd) as sock:
            try:
                copy.run(sock)
            except _LineGone:  # the keeper went between two frames of ours; what it left is on disk
                continue


class _LineGone(Exception):
    """Not an OSError: a reader of our output that went away is one too, and ends us."""


class _Copy:
    """How far both directions have come, whatever becomes of the line they use."""

    def __init__(self, start: int) -> None:
        self.done = False
        self._at, self._seq = start, 0
        self._strip = QueryFilter()
        self._keyboard: int | None = sys.stdin.fileno() if not sys.stdin.isatty() else None

    def run(self, sock: socket.socket) -> None:
        _send(sock, talk.read(self._at))
        hearing = talk.Hearing()
        while not self.done:
            watched: list[Any] = [sock] if self._keyboard is None else [sock, self._keyboard]
            ready, _, _ = select.select(watched, [], [])
            if self._keyboard in ready and self._keyboard is not None:
                self._type(sock, self._keyboard)
            if sock in ready:
                for message in hearing.feed(_receive(sock)):
                    self._take(message)

    def _type(self, sock: socket.socket, keyboard: int) -> None:
        data = os.read(keyboard, INPUT_BYTES_MAX)
        self._seq += 1
        if not data:
            self._keyboard = None
        _send(sock, talk.type_(self._seq, data) if data else talk.act(1, "end_input"))

    def _take(self, message: talk.Message) -> None:
        if isinstance(message, talk.End):
            self.done = True
        elif isinstance(message, talk.Gap):
            self._at = message.end
        elif isinstance(message, talk.Output):
            self._at = message.end
            data = self._strip.strip(message.data) if message.stream == 0 else message.data
            _put(2 if message.stream == 2 else 1, data)


def _send(sock: socket.socket, data: bytes) -> None:
    try:
        sock.sendall(data)
    except ConnectionError:
        raise _LineGone from None


def _receive(sock: socket.socket) -> bytes:
    try:
        data = sock.recv(_READ_BYTES)
    except ConnectionError:
        raise _LineGone from None
    if not data:
        raise _LineGone
    return data


def _put(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
