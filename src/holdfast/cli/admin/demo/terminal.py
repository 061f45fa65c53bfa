"""A real terminal with one program in it, to read from and to kill."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

_READ_BYTES = 65536


class DemoTerminal:
    """A PTY of 80x24 whose other end is the program's controlling terminal."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.output = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                os.execvpe(command[0], command, env)
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def until(self, pattern: bytes, seconds: float = 30.0) -> re.Match[bytes] | None:
        """Read until the pattern is there; None when the time is up or the program has left."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.output)):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._fd], [], [], left)[0]:
                return None
            try:
                data = os.read(self._fd, _READ_BYTES)
            except OSError:  # the program and its children have closed the terminal
                return re.search(pattern, self.output)
            self.output += data
        return found

    def kill(self) -> None:
        """SIGKILL the client, then close its terminal."""
        # Forget the pid first: a signal may interrupt this, and after the wait the pid may belong to another process.
        pid, self.pid = self.pid, 0
        if pid == 0:
            return
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it was collected already
        os.close(self._fd)
