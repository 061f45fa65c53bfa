"""Running in the foreground without a terminal: stdin goes in, output comes out, until the session ends."""

from __future__ import annotations

import os
import select
import socket
import sys

from ..model.limits import INPUT_BYTES_MAX
from ..term.queries import QueryFilter
from ..wire import frames

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
        _send(sock, frames.read(self._at))
        decoder = frames.Decoder()
        while not self.done:
            watched: list[Any] = [sock] if self._keyboard is None else [sock, self._keyboard]
            ready, _, _ = select.select(watched, [], [])
            if self._keyboard in ready and self._keyboard is not None:
                self._type(sock, self._keyboard)
            if sock in ready:
                for kind, payload in decoder.feed(_receive(sock)):
                    self._take(kind, payload)

    def _type(self, sock: socket.socket, keyboard: int) -> None:
        data = os.read(keyboard, INPUT_BYTES_MAX)
        self._seq += 1
        if not data:
            self._keyboard = None
        end = frames.message(frames.ACT, {"id": 1, "op": "end_input"})
        _send(sock, frames.input_frame(self._seq, 0, data) if data else end)

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == frames.END:
            self.done = True
        elif kind == frames.GAP:
            self._at = frames.parse_pair(payload)[1]
        elif kind == frames.OUTPUT:
            offset, stream, chunk = frames.parse_output(payload)
            self._at = offset + len(chunk)
            _put(2 if stream == 2 else 1, self._strip.strip(chunk) if stream == 0 else chunk)


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
