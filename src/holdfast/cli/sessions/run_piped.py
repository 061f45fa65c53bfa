"""Runs a session in the foreground without a terminal: copies stdin and output until the session ends.

One piece of input is in flight at a time: the next is read when the keeper has accepted it. So no input is read that
cannot be delivered, the accepted bytes are known exactly, and output continues while the program does not read.
"""

from __future__ import annotations

import os
import select
import socket
import sys

from ...client import keeper_messages
from ...client.terminal_output import shown_on
from ...model import ids
from ...model.errors import HoldfastError
from ...model.limits import INPUT_BYTES_MAX
from ..ui import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...client._sync.host import Host
    from ...model.home import Home

_READ_BYTES = 1 << 18
_END_INPUT, _SEEN = 1, 2  # ids of this client's requests


def pass_through(host: Host, session: str, name: str, *, start: int = 0) -> None:
    """Copy in both directions from offset `start` on; returns at the end of the output, raises if input is refused."""
    copy, client = _PipedRun(name, start, host.home), ids.new("")
    while not copy.done:
        about, fd = host.call_fd("open", session=session, via="cli", client=client)
        with socket.socket(fileno=fd) as sock:
            try:
                copy.run(sock, heard="current" not in about)
            except _LineGone:  # the keeper ended between two frames; its output is on disk
                continue
    copy.finish()


class _LineGone(Exception):
    """The connection to the keeper was lost; not an OSError, which a closed stdout raises too."""


class _PipedRun:
    """The progress of both directions, kept across connections."""

    def __init__(self, name: str, start: int, home: Home) -> None:
        self.done = False
        self._name = name
        self._at, self._seq = start, 0
        self._shown = {fd: shown_on(fd, home) for fd in (1, 2)}
        piped = sys.stdin is not None and not sys.stdin.isatty()
        self._keyboard: int | None = sys.stdin.fileno() if piped else None
        self._unsure = b""  # sent, and not acknowledged yet
        self._taken = 0  # bytes that the keeper accepted
        self._epoch = 0  # the epoch of its last acknowledgement
        self._untaken = 0  # bytes that it accepted and the program never read
        self._told = False  # that some were left

    def run(self, sock: socket.socket, *, heard: bool) -> None:
        """`heard`: a keeper is at the other end; else the log on disk, which takes no input."""
        _send(sock, keeper_messages.read(self._at))
        if heard and self._unsure:
            _send(sock, keeper_messages.type_(self._seq, self._unsure))  # with the same number: it is typed once
        hearing = keeper_messages.KeeperDecoder()
        while not self.done:
            keyboard = self._keyboard if heard and not self._unsure else None
            watched: list[Any] = [sock] if keyboard is None else [sock, keyboard]
            ready, _, _ = select.select(watched, [], [])
            if sock in ready:  # first: what is typed is typed knowing what was heard
                for message in hearing.feed(_receive(sock)):
                    self._take(sock, message)
            if keyboard is not None and keyboard in ready and not self.done:
                self._type(sock, keyboard)

    def _type(self, sock: socket.socket, keyboard: int) -> None:
        data = os.read(keyboard, INPUT_BYTES_MAX)
        if data:
            self._seq += 1
            self._unsure = data
            _send(sock, keeper_messages.type_(self._seq, data))
        else:
            _send(sock, keeper_messages.act(_END_INPUT, "end_input"))
            self._keyboard = None

    def _take(self, sock: socket.socket, message: keeper_messages.Message) -> None:
        if isinstance(message, keeper_messages.End):
            self.done = True
        elif isinstance(message, keeper_messages.Gap):
            self._at = message.end
        elif isinstance(message, keeper_messages.Output):
            self._at = message.end
            fd = 2 if message.stream == 2 else 1
            _put(fd, self._shown[fd].strip(message.data))
        elif isinstance(message, keeper_messages.Typed):
            self._taken += len(self._unsure)
            self._unsure, self._epoch = b"", message.epoch
        elif isinstance(message, keeper_messages.Answer):
            self._answered(message.facts)
        elif isinstance(message, keeper_messages.Event):
            self._event(sock, message.facts)

    def _answered(self, facts: dict[str, Any]) -> None:
        error = facts.get("error")
        if not error or facts.get("id") == _SEEN:
            return
        if facts.get("id") == _END_INPUT:
            if error["code"] != "input_closed":
                printing.note(f"hold: cannot close the input of {self._name}: {self._why(error)}")
        elif error["code"] == "input_closed":  # as with any pipe: the program may stop reading
            printing.note(f"hold: {self._name} closed its input without reading all of it")
            self._stop_reading()
        else:
            raise self._refused(error["code"], error["message"], self._why(error, "hint"))

    def _event(self, sock: socket.socket, facts: dict[str, Any]) -> None:
        if facts.get("event") == "ended":
            self._untaken += int(facts.get("untaken") or 0)
        elif facts.get("event") == "controls":
            controls, flushed = facts["controls"], int(facts.get("flushed") or 0)
            lost = self._epoch and (controls["epoch"] != self._epoch or controls["holder"] is None)
            if lost and flushed:
                whose = f"{controls['name']} took the controls" if controls["holder"] else "the controls were lost"
                raise self._refused(
                    "conflict",
                    f"{whose}, and {flushed} unread bytes were discarded",
                    f"take them back: hold take {self._name}",
                )
            if lost:
                self._epoch = 0
            _send(sock, keeper_messages.act(_SEEN, "seen", epoch=controls["epoch"]))  # later input uses the new epoch

    def _refused(self, code: str, message: str, hint: str) -> HoldfastError:
        after = f"{self._name} got only {self._taken} bytes of input"
        return HoldfastError(
            code, f"{after}: {message}", f"{hint}; it keeps running without the rest, and its input stays open"
        )

    def _why(self, error: dict[str, Any], *parts: str) -> str:
        text = "; ".join(str(error[part]) for part in (parts or ("message", "hint")) if error.get(part))
        return text.replace("SESSION", self._name)

    def _stop_reading(self) -> None:
        """Close stdin, so that the writer of the pipe gets a broken pipe."""
        self._told = True
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        if self._keyboard is not None:
            os.dup2(nothing, self._keyboard)
        os.close(nothing)
        self._keyboard, self._unsure = None, b""

    def finish(self) -> None:
        """Print the end of the output, and report input that the program did not read."""
        for fd, shown in self._shown.items():
            _put(fd, shown.flush())
        count = self._untaken + len(self._unsure)
        if count and not self._told:
            printing.note(f"hold: {self._name} did not read the last {count} bytes of its input")


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
