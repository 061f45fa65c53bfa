"""Input on its way to the program: queued in order, bounded, and never cut in silence by the kernel's line buffer."""

from __future__ import annotations

import array
import errno
import fcntl
import os
import select
import termios

from ...model.limits import CANONICAL_LINE_MAX, QUEUED_INPUT_BYTES_MAX
from ...model.sessions.controls import Refused
from ..start.program import Program

_WRITE_BYTES = 4096  # one PTY buffer
_DRAIN_BYTES = 65536  # a whole pipe, unless somebody made it larger


class InputQueue:
    """Bytes accepted from operators and not yet taken by the kernel, with whose they are."""

    __slots__ = ("_ending", "_line", "_next_line", "_program", "_queue", "_runs", "_typists", "_untaken")

    def __init__(self, program: Program) -> None:
        self._program = program
        self._queue = bytearray()
        self._runs: list[tuple[str, int]] = []  # (operator, bytes) in the queue's order
        self._line = 0  # bytes since the last line end written in canonical mode
        self._next_line = 0  # the same after the bytes that were checked last
        self._ending = False  # the pipe is closed once the queue is written
        self._untaken = 0  # bytes for which there was no reader any more
        self._typists: set[str] = set()  # operators of whom something may be unread

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def full(self) -> bool:
        return len(self._queue) >= QUEUED_INPUT_BYTES_MAX

    @property
    def untaken(self) -> int:
        """Bytes that were accepted and that the kernel has not taken: once the program is gone, nobody ever will."""
        return self._untaken + len(self._queue)

    def room(self, size: int) -> None:
        """Raise when so much more would be too much; for whoever cannot be made to wait by not being read."""
        if self._queue and len(self._queue) + size > QUEUED_INPUT_BYTES_MAX:
            raise Refused(
                "busy",
                f"the program has not taken {len(self._queue)} bytes of earlier input",
                "wait until it reads, then send again",
            )

    def check(self, data: bytes) -> None:
        """Raise when these bytes could not be typed; called before anything is recorded or written."""
        if self._program.master >= 0:
            self._check_line(data)
        elif self._program.stdin < 0 or self._ending:
            raise Refused("input_closed", "the program's input is closed", "nothing can be typed any more")

    def add(self, data: bytes, operator: str) -> None:
        """Queue the bytes that were checked last."""
        if operator not in self._typists:  # one hand typing on is not worth a question to the kernel
            if self._typists and not self._queue and not self._line and not self._unread():
                self._typists.clear()
            self._typists.add(operator)
        self._line = self._next_line
        self._put(data, operator)

    def mixed(self, operator: str) -> bool:
        """Whether something that another operator typed may be unread."""
        return bool(self._typists - {operator, ""})

    @property
    def echo_off(self) -> bool:
        """Whether the terminal reads lines without showing them, which is how programs ask for secrets."""
        if self._program.master < 0:
            return False
        mode = termios.tcgetattr(self._program.master)[3]
        return bool(mode & termios.ICANON) and not mode & termios.ECHO

    def _put(self, data: bytes, operator: str) -> None:
        self._queue += data
        self._runs.append((operator, len(data)))

    def _check_line(self, data: bytes) -> None:
        """In canonical mode the kernel drops what exceeds its line buffer; refuse it instead."""
        last = max(data.rfind(b"\n"), data.rfind(b"\r"))
        if len(data) + self._line <= CANONICAL_LINE_MAX:  # fits whatever the mode: nothing to ask the kernel
            self._next_line = len(data) - last - 1 if last >= 0 else self._line + len(data)
            return
        mode = termios.tcgetattr(self._program.master)
        if not mode[3] & termios.ICANON:
            self._next_line = 0
            return
        ends = {b"\n", mode[6][termios.VEOF], mode[6][termios.VEOL], mode[6][termios.VKILL], mode[6][termios.VINTR]} - {
            b"\x00"
        }
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
        self._next_line = line

    def flush(self) -> bool:
        """Write what the kernel takes; true when some is left."""
        fd = self._program.master if self._program.master >= 0 else self._program.stdin
        while self._queue and fd >= 0:
            try:
                done = os.write(fd, self._queue[:_WRITE_BYTES])
            except BlockingIOError:
                return True
            except OSError as e:
                self._untaken += self.clear()
                if e.errno == errno.EPIPE:
                    self._close_stdin()
                return False
            del self._queue[:done]
            self._passed(done)
        if self._ending:
            self._close_stdin()
        return False

    def _passed(self, size: int) -> None:
        if not self._queue:
            self._runs.clear()
            return
        while size:
            operator, count = self._runs[0]
            if count > size:
                self._runs[0] = (operator, count - size)
                return
            del self._runs[0]
            size -= count

    def end(self, operator: str) -> None:
        """End of input: close the pipe once the queue is written, or type the terminal's end-of-file character."""
        if self._program.master >= 0:
            self._put(termios.tcgetattr(self._program.master)[6][termios.VEOF], operator)
        else:
            self._ending = self._program.stdin >= 0

    def _close_stdin(self) -> None:
        self._ending = False
        if self._program.stdin >= 0:
            os.close(self._program.stdin)
            self._program.stdin = -1

    # -- taking back

    def clear(self) -> int:
        """Forget what is queued, a pending end of input too."""
        count = len(self._queue)
        self._queue.clear()
        self._runs.clear()
        self._line, self._ending = 0, False
        return count

    def discard(self, operator: str) -> int:
        """Forget what one operator has in the queue."""
        kept, runs, at = bytearray(), [], 0
        for owner, count in self._runs:
            if owner != operator:
                kept += self._queue[at : at + count]
                runs.append((owner, count))
            at += count
        count = len(self._queue) - len(kept)
        if count:
            self._queue, self._runs, self._line = kept, runs, 0
        return count

    def recall(self) -> int:
        """Take back all that the program has not read; how many bytes that was, as far as the kernel tells.

        A terminal is flushed (it counts complete lines only, in canonical mode). A pipe has no flush, but it can be
        opened once more through /proc and read empty: what we get, the program does not.
        """
        count = self.clear()
        self._typists.clear()
        if self._program.slave >= 0:
            count += self._unread()
            termios.tcflush(self._program.master, termios.TCOFLUSH)  # on its way between the two
            termios.tcflush(self._program.slave, termios.TCIFLUSH)
        elif self._program.stdin >= 0:
            count += self._drain()
        return count

    def _unread(self) -> int:
        """Bytes that wait in the kernel for the program, as far as it tells."""
        fd = self._program.slave if self._program.slave >= 0 else self._program.stdin
        count = array.array("i", [0])
        try:
            if self._program.slave >= 0:  # polling has the kernel pass on what is on its way, so that it is counted
                poll = select.poll()
                poll.register(fd, select.POLLIN)
                poll.poll(0)
            fcntl.ioctl(fd, termios.FIONREAD, count)
        except (OSError, ValueError):
            return 0
        return count[0]

    def _drain(self) -> int:
        """Never more than a pipe can hold: nobody writes to it but us, and we are here."""
        try:
            fd = os.open(f"/proc/self/fd/{self._program.stdin}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return 0  # a machine that does not allow it: what is in the pipe stays there
        count = 0
        try:
            while data := os.read(fd, _DRAIN_BYTES):
                count += len(data)
        except BlockingIOError:
            pass
        finally:
            os.close(fd)
        return count
