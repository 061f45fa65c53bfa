"""The user's terminal: raw while attached, and always restored."""

from __future__ import annotations

import os
import signal
import sys
import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_FATAL = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class RawTerminal:
    """Sets raw mode on entry; on exit restores the mode and the screen, also after a fatal signal or an exception."""

    def __init__(self, reset: bytes) -> None:
        self._reset = reset
        self._in, self._out = sys.stdin.fileno(), sys.stdout.fileno()
        self._before: list[object] | None = None
        self._handlers: dict[int, object] = {}

    def __enter__(self) -> RawTerminal:
        self._before = termios.tcgetattr(self._in)
        for number in _FATAL:
            self._handlers[number] = signal.signal(number, self._fatal)
        mode = termios.tcgetattr(self._in)
        mode[0] &= ~(
            termios.IGNBRK
            | termios.BRKINT
            | termios.PARMRK
            | termios.ISTRIP
            | termios.INLCR
            | termios.IGNCR
            | termios.ICRNL
            | termios.IXON
        )
        mode[1] &= ~termios.OPOST
        mode[2] = (mode[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        mode[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._in, termios.TCSADRAIN, mode)
        return self

    def __exit__(self, *exc: object) -> None:
        self.restore()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def restore(self) -> None:
        if self._before is None:
            return
        try:
            os.write(self._out, self._reset)
        except OSError:
            pass  # the terminal is gone: nothing to restore
        try:
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]
        except (OSError, termios.error):
            pass
        self._before = None

    def _fatal(self, number: int, frame: FrameType | None) -> None:
        self.restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def window_size(fd: int) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(fd)
    except OSError:
        return 80, 24
    return size.columns or 80, size.lines or 24
