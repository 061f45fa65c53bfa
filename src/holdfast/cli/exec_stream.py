"""Showing an exec's output live: the bytes come from the keeper, the end comes from the host, both watched at once."""

from __future__ import annotations

import os
import select
import socket
import sys

from ..client import talk
from ..client.io_sync import Wire
from ..client.terminal import Exact, shown_on
from ..model.errors import HoldfastError, from_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..client.sync import Host
    from ..client.terminal import TerminalFilter

_READ_BYTES = 1 << 18
_HELD_MAX = 1 << 20  # bytes held back behind what looks like our end mark
_MARK = b"\x1b]7733;"  # our own marks follow the output; they are not part of it


class Excerpt:
    """What of a session's output belongs to the command: from its begin mark up to its end mark."""

    def __init__(self, start: int, *, raw: bool, shown: TerminalFilter | Exact | None = None) -> None:
        """`raw`: line ends as the terminal has them. `shown`: what goes to a person's terminal."""
        self._raw, self._filter, self._held = raw, shown or Exact(), b""
        self.at = start  # the offset after the last byte given

    def give(self, data: bytes, end: int | None) -> bytes:
        """Take the bytes that follow; what of them is to be shown. `end` is the output's end, once it is known."""
        self.at += len(data)
        data = self._held + data
        self._held = b""
        if end is not None:
            data = data[: max(0, end - (self.at - len(data)))]
            if self.at < end and data.endswith(b"\r"):  # its line feed is in the next chunk
                data, self._held = data[:-1], b"\r"
        else:
            cut = data.find(_MARK)
            if cut >= 0 and len(data) - cut > _HELD_MAX:
                cut = len(data)  # the host would have told of an end by now: a look-alike
            if cut < 0:  # a mark or a CR LF may be cut in two by the chunk's end
                cut = next((len(data) - n for n in range(min(len(_MARK), len(data)), 0, -1)
                            if _MARK.startswith(data[-n:]) or data[-n:] == b"\r"), len(data))  # fmt: skip
            data, self._held = data[:cut], data[cut:]
        return self._filter.strip(data if self._raw else data.replace(b"\r\n", b"\n"))

    def skip(self, to: int) -> None:
        """A gap: the bytes up to `to` are gone."""
        self.at, self._held = max(self.at, to), b""


def _show(data: bytes) -> None:
    if data:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def follow(
    host: Host, session: str, started: dict[str, Any], timeout: float | None, *, raw: bool
) -> dict[str, Any]:
    """Print from the begin mark on until the host says that the command ended, blocks, or the time is up.
    `raw`: exactly the bytes; on a terminal else what that may get of them."""
    _, fd = host.call_fd("open", session=session, read_only=True, via="cli")
    stream = socket.socket(fileno=fd)
    start = started["start"] if started["start"] is not None else started["end"]
    out = sys.stdout.fileno()
    shown = shown_on(out, host.home, raw=raw)
    excerpt, hearing = Excerpt(start, raw=raw or os.isatty(out), shown=shown), talk.Hearing()
    stream.sendall(talk.read(start))
    request = {
        "op": "exec_result",
        "session": session,
        "exec_id": started["exec_id"],
        "wait": True,
        "timeout": timeout,
    }
    wire = Wire.connect(host.home, True)
    wire.send(request)
    result: dict[str, Any] | None = None
    with stream:
        while result is None or excerpt.at < result["end"]:
            watched: list[Any] = [stream] if result is not None else [stream, wire.sock]
            ready, _, _ = select.select(watched, [], [])
            if result is None and wire.sock in ready:
                wire, result = _answer(host, wire, request)
                if result is not None:
                    _show(excerpt.give(b"", result["end"]))
                continue
            data = stream.recv(_READ_BYTES)
            if not data:
                break
            for message in hearing.feed(data):
                if isinstance(message, talk.Output):
                    _show(excerpt.give(message.data, result["end"] if result else None))
                elif isinstance(message, talk.Gap):
                    excerpt.skip(message.end)
                elif isinstance(message, talk.End) and result is not None:
                    wire.close()
                    _show(shown.flush())
                    return result
    while result is None:
        wire, result = _answer(host, wire, request)
    wire.close()
    _show(shown.flush())
    return result


def _answer(host: Host, wire: Wire, request: dict[str, Any]) -> tuple[Wire, dict[str, Any] | None]:
    """The host's answer; asked again of the next daemon when this one died."""
    try:
        reply, _ = wire.receive()
    except ConnectionError:
        wire.close()
        again = Wire.connect(host.home, True)
        again.send(request)
        return again, None
    if "error" in reply:
        error: HoldfastError = from_dict(reply["error"])  # type: ignore[arg-type]
        raise error
    return wire, reply["ok"]  # type: ignore[return-value]
