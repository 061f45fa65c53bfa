"""A terminal of our own: a program on a PTY whose other end this process reads, as a terminal emulator would."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

_READ_BYTES = 65536
_ENDING_S = 5.0  # a client that was asked to go gets so long; then it is killed


class TooSlow(Exception):
    """What was waited for did not come."""


class Terminal:
    """`argv` on a PTY. Reads are blocking with a deadline; nothing is emulated, bytes are only looked at."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], *, cols: int = 80, rows: int = 24, cwd: str = "/"
    ) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                # In the child, so that the program never sees another size.
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
                os.chdir(cwd)
                os.execvpe(argv[0], list(argv), dict(env))
            finally:
                os._exit(127)
        os.set_blocking(self.fd, False)
        self._poll = select.poll()
        self._poll.register(self.fd, select.POLLIN)
        self._ended = False

    def write(self, data: bytes) -> None:
        os.write(self.fd, data)

    def read(self, deadline: float) -> bytes:
        """What is there, as soon as something is; b"" when the program has closed its end."""
        while True:
            try:
                return os.read(self.fd, _READ_BYTES)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TooSlow(f"nothing came from pid {self.pid}") from None
                self._poll.poll(left * 1000)
            except OSError:  # EIO: the last descriptor of the other end is closed
                return b""

    def until(self, needle: bytes, timeout: float) -> float:
        """Read until `needle` has come; the monotonic time of that read."""
        deadline = time.monotonic() + timeout
        tail = b""
        while True:
            data = self.read(deadline)
            now = time.monotonic()
            if not data:
                raise TooSlow(f"pid {self.pid} ended before {needle!r} came; it said {tail[-300:]!r}")
            if needle in data or needle in tail[-len(needle) :] + data[: len(needle)]:
                return now
            tail = (tail + data)[-1000:]  # enough for a message of failure

    def drain(self) -> None:
        """Throw away what has come so far."""
        try:
            while os.read(self.fd, _READ_BYTES):
                pass
        except OSError:
            pass

    def close(self) -> None:
        """Hang up, as closing a terminal window does, and see the client off."""
        if self._ended:
            return
        self._ended = True
        os.kill(self.pid, signal.SIGHUP)
        os.close(self.fd)
        reap(self.pid, _ENDING_S)


def reap(pid: int, patience_s: float) -> None:
    """Wait for a child of ours to end; kill it when it does not."""
    fd = os.pidfd_open(pid)
    try:
        if not select.select([fd], [], [], patience_s)[0]:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    finally:
        os.close(fd)
