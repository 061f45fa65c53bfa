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
    _, fd = host.call_fd("open", session=session, via="cli")
    sock = socket.socket(fileno=fd)
    sock.sendall(frames.read(start))
    decoder, strip = frames.Decoder(), QueryFilter()
    keyboard: int | None = sys.stdin.fileno() if not sys.stdin.isatty() else None
    seq = 0
    with sock:
        while True:
            watched: list[Any] = [sock] if keyboard is None else [sock, keyboard]
            ready, _, _ = select.select(watched, [], [])
            if keyboard in ready and keyboard is not None:
                data = os.read(keyboard, INPUT_BYTES_MAX)
                seq += 1
                if data:
                    sock.sendall(frames.input_frame(seq, 0, data))
                else:
                    sock.sendall(frames.message(frames.ACT, {"id": 1, "op": "end_input"}))
                    keyboard = None
            if sock in ready:
                data = sock.recv(_READ_BYTES)
                if not data:
                    return
                for kind, payload in decoder.feed(data):
                    if kind == frames.END:
                        return
                    if kind == frames.OUTPUT:
                        _, stream, chunk = frames.parse_output(payload)
                        _put(2 if stream == 2 else 1, strip.strip(chunk) if stream == 0 else chunk)


def _put(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
