"""Shows an exec's output live: the bytes come from the keeper, the command's end from the host."""

from __future__ import annotations

import os
import select
import socket
import sys

from ...client import keeper_messages
from ...client.terminal_output import Exact, shown_on
from ...model.errors import HoldfastError, from_dict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...client._io.blocking_socket import HostConnection
    from ...client._sync.host import Host
    from ...client.terminal_output import TerminalFilter

_READ_BYTES = 1 << 18
_HELD_MAX = 1 << 20  # bytes held back behind a possible end mark
_MARK = b"\x1b]7733;"  # the marks around the output are not part of it


class CommandOutput:
    """Extracts a command's output from the session's: from its begin mark to its end mark."""

    def __init__(self, start: int, *, raw: bool, shown: TerminalFilter | Exact | None = None) -> None:
        """`raw`: line ends of the terminal. `shown`: filter for a person's terminal."""
        self._raw, self._filter, self._held = raw, shown or Exact(), b""
        self.at = start  # the offset after the last byte given

    def give(self, data: bytes, end: int | None) -> bytes:
        """Feed the next bytes; returns those to show. `end` is the output's end, once it is known."""
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
                cut = len(data)  # the host would have reported the end by now: not a real mark
            if cut < 0:  # a mark or a CR LF may be cut in two by the chunk's end
                cut = next(
                    (
                        len(data) - n
                        for n in range(min(len(_MARK), len(data)), 0, -1)
                        if _MARK.startswith(data[-n:]) or data[-n:] == b"\r"
                    ),
                    len(data),
                )
            data, self._held = data[:cut], data[cut:]
        return self._filter.strip(data if self._raw else data.replace(b"\r\n", b"\n"))

    def skip(self, to: int) -> None:
        """A gap: the bytes up to `to` are gone."""
        self.at, self._held = max(self.at, to), b""


def _show(data: bytes) -> None:
    if data:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def follow(host: Host, session: str, started: dict[str, Any], timeout: float | None, *, raw: bool) -> dict[str, Any]:
    """Print from the begin mark on until the host reports that the command ended or blocks, or the timeout.
    `raw`: exact bytes; otherwise filtered for a terminal.

    A command can end its shell and with it the keeper: the rest is then read from the log.
    """
    start = started["start"] if started["start"] is not None else started["end"]
    out = sys.stdout.fileno()
    shown = shown_on(out, host.home, raw=raw)
    excerpt = CommandOutput(start, raw=raw or os.isatty(out), shown=shown)
    asked = {"session": session, "exec_id": started["exec_id"], "wait": True, "timeout": timeout}
    waiting = _Waiting(host, {"op": "exec_result", **asked})
    line: _Line | None = _Line(host, session, start)
    try:
        while waiting.result is None or excerpt.at < waiting.result["end"]:
            if line is None and waiting.result is not None:
                line = _Line(host, session, excerpt.at)
            watched = [source.sock for source in (line, waiting) if source is not None and source.sock is not None]
            ready, _, _ = select.select(watched, [], [])
            if waiting.sock in ready:
                waiting.hear()
                if waiting.result is not None:
                    _show(excerpt.give(b"", waiting.result["end"]))
                continue
            assert line is not None
            for message in line.hear():
                if isinstance(message, keeper_messages.Output):
                    _show(excerpt.give(message.data, waiting.result["end"] if waiting.result else None))
                elif isinstance(message, keeper_messages.Gap):
                    excerpt.skip(message.end)
                elif isinstance(message, keeper_messages.End) and waiting.result is not None:
                    _show(shown.flush())
                    return waiting.result
            if line.broken:
                line.close()
                line = None
        _show(shown.flush())
        return waiting.result
    finally:
        waiting.close()
        if line is not None:
            line.close()


class _Line:
    """A session's output from an offset on: from its keeper, or from the log if the keeper is gone."""

    def __init__(self, host: Host, session: str, start: int) -> None:
        _, fd = host.call_fd("open", session=session, read_only=True, via="cli", sure=True)
        self.sock, self._hearing, self.broken = socket.socket(fileno=fd), keeper_messages.KeeperDecoder(), False
        try:
            self.sock.sendall(keeper_messages.read(start))
        except ConnectionError:
            pass  # it has just ended: reading returns its last messages, then the end

    def hear(self) -> Iterator[keeper_messages.Message]:
        try:
            data = self.sock.recv(_READ_BYTES)
        except ConnectionError:
            data = b""
        self.broken = not data
        yield from self._hearing.feed(data)

    def close(self) -> None:
        self.sock.close()


class _Waiting:
    """Waits for the host's report of the command's end; asks the next daemon if this one dies."""

    def __init__(self, host: Host, request: dict[str, Any]) -> None:
        self._host, self._request = host, request
        self.result: dict[str, Any] | None = None
        self._ask()

    def _ask(self) -> None:
        self._wire: HostConnection | None = self._host.connection()
        try:
            self._wire.send(self._request)
        except ConnectionError:
            pass  # found by reading

    @property
    def sock(self) -> socket.socket | None:
        return self._wire.sock if self._wire is not None else None

    def hear(self) -> None:
        assert self._wire is not None
        try:
            reply, _ = self._wire.receive()
        except ConnectionError:
            self.close()
            self._ask()
            return
        self.close()
        if "error" in reply:
            error: HoldfastError = from_dict(reply["error"])  # type: ignore[arg-type]
            raise error
        self.result = reply["ok"]  # type: ignore[assignment]

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None
