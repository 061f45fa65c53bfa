"""The kernel itself: its process, its channels, and how it is interrupted."""

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
# Outputs on their way to us. A kernel drops what a reader does not take, so this is far past what a cell displays.
_OUTPUTS_QUEUED = 100_000
_QUIET = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # else Python's debugger warns of its own defaults at every start
_CLOSING_MS = 100  # for a message that was just sent


class Kernel:
    """One process and the four sockets to it. It dies with us: without its recorder nobody could tell what it did."""

    def __init__(
        self, argv: list[str], env: dict[str, str], connection_file: str, made: Json, interrupt_mode: str
    ) -> None:
        words = [word.replace("{connection_file}", connection_file) for word in argv]
        ours = os.getpid()

        def die_with_us() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != ours:
                os._exit(1)

        # A session of its own: the terminal is ours, and Ctrl-C there reaches the kernel once, through us. The
        # parent is said to be 1, because ipykernel would else wake up every second to look for it.
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
        # The kernel drops a question for a front end whose stdin channel is not connected yet, and waits for ever.
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
        else:  # one identity: a kernel asks for input where the request came from
            sock.setsockopt(zmq.IDENTITY, self._codec.session.encode())
        if watched:
            self.connecting = sock.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        sock.connect(place.address(made, channel))
        return sock

    def can_be_asked(self) -> bool:
        """Whether the stdin channel is connected now; `connecting` is readable when that has changed."""
        try:
            while True:
                self.connecting.recv_multipart(zmq.NOBLOCK)
                self._connected = True
        except zmq.Again:
            return self._connected

    def ask(self, kind: str, content: Json) -> str:
        """Send a request; the id that its answers name as their parent's."""
        return self._send(self._shell, kind, content)

    def answer(self, text: str, parent: Json) -> None:
        self._send(self._stdin, "input_reply", {"value": text, "status": "ok"}, parent)

    def interrupt(self) -> None:
        if self._by_message:
            self._send(self._control, "interrupt_request", {})
        else:
            self.signal(signal.SIGINT)

    def signal(self, number: int) -> None:
        """To the kernel and what it runs in its own group, as a terminal would."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def _send(self, sock: zmq.Socket[bytes], kind: str, content: Json, parent: Json | None = None) -> str:
        id, frames = self._codec.pack(kind, content, datetime.now(UTC).isoformat(), parent)
        sock.send_multipart(frames)
        return id

    def received(self, sock: zmq.Socket[bytes]) -> Iterator[Message]:
        """What has come on a channel, without waiting."""
        while True:
            try:
                frames = sock.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            message = self._codec.unpack(frames)
            if message is not None:
                yield message

    def wait(self) -> int:
        """Its exit code; negative for a signal."""
        return self._process.wait()
