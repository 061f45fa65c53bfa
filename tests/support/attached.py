"""A person's terminal with `hold attach` (or `hold run`) in it: a real PTY, drawn by an emulator of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable
from typing import Any

from holdfast.term.screen import Screen
from tests.support.home import HOLD, HomeForTests


class AttachedTerminal:
    """`words` are the words after `hold`. Reading happens in `pump`, so a stalled terminal is one nobody pumps."""

    def __init__(self, hold: HomeForTests, *words: str, size: tuple[int, int] = (80, 24), **env: str) -> None:
        self.size = size
        self.screen = Screen(*size)
        self.raw = bytearray()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(HOLD[0], [*HOLD, *words], {**hold.env, "TERM": "xterm-256color", **env})
        self.resize(*size)
        self.status: int | None = None

    def resize(self, cols: int, rows: int) -> None:
        self.size = (cols, rows)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        if self.screen.size != (cols, rows):
            self.screen.resize(cols, rows)

    def type(self, data: bytes) -> None:
        os.write(self.fd, data)

    def pump(self, timeout: float = 0.0) -> bool:
        """Draw what has come; true when something had."""
        got = False
        while select.select([self.fd], [], [], timeout)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return got
            if not data:
                return got
            self.raw += data
            self.screen.feed(data)
            got, timeout = True, 0.0
        return got

    def until(self, condition: Callable[[], Any], timeout: float = 60) -> Any:
        """Pump until the condition holds."""
        deadline = time.monotonic() + timeout
        while not (value := condition()):
            assert time.monotonic() < deadline, f"not within {timeout} s; the screen:\n{self.screen.text()}"
            self.pump(0.05)
        return value

    def shows(self, text: str, timeout: float = 60) -> None:
        self.until(lambda: text in self.screen.text(), timeout)

    def settle(self, quiet: float = 0.3) -> None:
        """Until nothing more is drawn for a moment."""
        while self.pump(quiet):
            pass

    def wait(self, timeout: float = 60) -> int:
        """The client's exit code, once it has ended."""
        deadline = time.monotonic() + timeout
        while self.status is None:
            self.pump(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            assert time.monotonic() < deadline, "the client did not end"
        self.pump()
        return self.status

    def mode(self) -> list[Any]:
        return termios.tcgetattr(self.fd)

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.status is None:
            os.kill(self.pid, number)
            self.wait()

    def close(self) -> None:
        self.kill()
        os.close(self.fd)
        self.screen.close()

    def __enter__(self) -> AttachedTerminal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
