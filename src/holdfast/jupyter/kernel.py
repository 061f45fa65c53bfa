"""The kernel: its process, its channels and its interrupts."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import zmq

from . import connection_file as place
from .messages import Message, MessageCodec

Json = dict[str, Any]

_PR_SET_PDEATHSIG = 1
# Queued outputs. A kernel drops what a reader does not take, so this is far more than a cell displays.
_OUTPUTS_QUEUED = 100_000
_QUIET = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # otherwise Python's debugger prints a warning at every start
_CLOSING_MS = 100  # for a message that was just sent


class Kernel:
    """One process and the four sockets to it. It dies with this process, which records what it does."""

    def __init__(
        self, argv: list[str], env: dict[str, str], connection_file: str, made: Json, interrupt_mode: str
    ) -> None:
        words = [word.replace("{connection_file}", connection_file) for word in argv]
        ours = os.getpid()

        def die_with_us() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != ours:
                os._exit(1)

        # Its own session: the terminal belongs to this process, which passes Ctrl-C on once. The
        # parent is said to be 1, because ipykernel would otherwise poll for it every second.
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**_QUIET, **env, "JPY_PARENT_PID": "1"},
            preexec_fn=die_with_us,  # noqa: PLW1509  (there is no other thread yet)
        )
        self.pid = self._process.pid
        self.ended_fd = os.pidfd_open(self.pid)
        self._by_message = interrupt_mode == "message"
        self._codec = MessageCodec(made["key"].encode(), os.urandom(16).hex())
        self._context = zmq.Context()
        self._connected = False
        self._shell = self._connect(zmq.DEALER, made, "shell")
        # The kernel drops an input request to a front end whose stdin channel is not connected yet, and waits forever.
        self._stdin = self._connect(zmq.DEALER, made, "stdin", watched=True)
        self._control = self._connect(zmq.DEALER, made, "control")
        self.iopub = self._connect(zmq.SUB, made, "iopub")
        self.sockets = (self._shell, self._stdin, self._control, self.iopub)

    def _connect(self, kind: int, made: Json, channel: str, *, watched: bool = False) -> zmq.Socket[bytes]:
        sock: zmq.Socket[bytes] = self._context.socket(kind)
        sock.linger = _CLOSING_MS
        if kind == zmq.SUB:
            sock.rcvhwm = _OUTPUTS_QUEUED
            sock.subscribe(b"")
        else:  # one identity: a kernel sends input requests to the request's sender
            sock.setsockopt(zmq.IDENTITY, self._codec.session.encode())
        if watched:
            self.connecting = sock.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        sock.connect(place.address(made, channel))
        return sock

    def can_be_asked(self) -> bool:
        """Whether the stdin channel is connected; `connecting` is readable when that changes."""
        try:
            while True:
                self.connecting.recv_multipart(zmq.NOBLOCK)
                self._connected = True
        except zmq.Again:
            return self._connected

    def ask(self, kind: str, content: Json) -> str:
        """Send a request; returns its id, which the replies name as their parent."""
        return self._send(self._shell, kind, content)

    def answer(self, text: str, parent: Json) -> None:
        self._send(self._stdin, "input_reply", {"value": text, "status": "ok"}, parent)

    def interrupt(self) -> None:
        if self._by_message:
            self._send(self._control, "interrupt_request", {})
        else:
            self.signal(signal.SIGINT)

    def signal(self, number: int) -> None:
        """Signal the kernel and its process group, as a terminal would."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def _send(self, sock: zmq.Socket[bytes], kind: str, content: Json, parent: Json | None = None) -> str:
        id, frames = self._codec.pack(kind, content, datetime.now(UTC).isoformat(), parent)
        sock.send_multipart(frames)
        return id

    def received(self, sock: zmq.Socket[bytes]) -> Iterator[Message]:
        """The messages that have arrived on a channel; does not wait."""
        while True:
            try:
                frames = sock.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            message = self._codec.unpack(frames)
            if message is not None:
                yield message

    def wait(self) -> int:
        """Wait for its exit code; negative for a signal."""
        return self._process.wait()
