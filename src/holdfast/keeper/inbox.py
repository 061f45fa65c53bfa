"""Input on its way to the program: queued in order, bounded, and never cut in silence by the kernel's line buffer."""

from __future__ import annotations

import array
import errno
import fcntl
import os
import termios

from ..model.controls import Refused
from ..model.limits import CANONICAL_LINE_MAX, QUEUED_INPUT_BYTES_MAX
from .program import Program

_WRITE_BYTES = 4096  # one PTY buffer


class InputQueue:
    """Bytes accepted from operators and not yet taken by the kernel."""

    __slots__ = ("_line", "_program", "_queue")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._queue = bytearray()
        self._line = 0  # bytes since the last line end written in canonical mode

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        return len(self._queue) >= QUEUED_INPUT_BYTES_MAX

    def add(self, data: bytes) -> None:
        if self._program.master >= 0:
            self._check_line(data)
        elif self._program.stdin < 0:
            raise Refused("conflict", "the program's input is closed", "nothing can be typed any more")
        self._queue += data

    def _check_line(self, data: bytes) -> None:
        """In canonical mode the kernel drops what exceeds its line buffer; refuse it instead."""
        last = max(data.rfind(b"\n"), data.rfind(b"\r"))
        if len(data) + self._line <= CANONICAL_LINE_MAX:  # fits whatever the mode: nothing to ask the kernel
            self._line = len(data) - last - 1 if last >= 0 else self._line + len(data)
            return
        mode = termios.tcgetattr(self._program.master)
        if not mode[3] & termios.ICANON:
            self._line = 0
            return
        ends = {b"\n", mode[6][termios.VEOF], mode[6][termios.VEOL], mode[6][termios.VKILL],
                mode[6][termios.VINTR]} - {b"\x00"}  # fmt: skip
        if mode[0] & termios.ICRNL:
            ends.add(b"\r")
        line = self._line
        at = 0
        while at < len(data):
            cut = min((n for n in (data.find(end, at) for end in ends) if n >= 0), default=-1)
            line += (len(data) if cut < 0 else cut) - at
            if line > CANONICAL_LINE_MAX:
                raise Refused(
                    "invalid",
                    f"a line of more than {CANONICAL_LINE_MAX} bytes does not fit the terminal's line buffer",
                    "send it in shorter lines, or run the program with --pipes",
                )
            if cut < 0:
                break
            line, at = 0, cut + 1
        self._line = line

    def flush(self) -> bool:
        """Write what the kernel takes; true when some is left."""
        fd = self._program.master if self._program.master >= 0 else self._program.stdin
        while self._queue and fd >= 0:
            try:
                done = os.write(fd, self._queue[:_WRITE_BYTES])
            except BlockingIOError:
                return True
            except OSError as e:
                if e.errno == errno.EPIPE:
                    self.close_stdin()
                self._queue.clear()
                return False
            del self._queue[:done]
        return False

    def end(self) -> None:
        """End of input: close the pipe once it is drained, or type the terminal's end-of-file character."""
        if self._program.master >= 0:
            self._queue += termios.tcgetattr(self._program.master)[6][termios.VEOF]
            self.flush()
            return
        os.set_blocking(self._program.stdin, True) if not self._queue else None
        if not self.flush():
            self.close_stdin()

    def close_stdin(self) -> None:
        if self._program.stdin >= 0:
            os.close(self._program.stdin)
            self._program.stdin = -1

    def clear(self) -> int:
        count = len(self._queue)
        self._queue.clear()
        self._line = 0
        return count

    def unread(self) -> int:
        """Bytes in the terminal that the program has not read (complete lines only, in canonical mode)."""
        count = array.array("i", [0])
        try:
            fcntl.ioctl(self._program.slave, termios.FIONREAD, count)
        except OSError:
            return 0
        return count[0]
