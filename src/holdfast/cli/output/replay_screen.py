"""Draws a replay: on a terminal with a line for who acts, or to a pipe with the acts on stderr."""

from __future__ import annotations

import os
import sys

from ...client.terminal_output import picture, reset_sequence
from ..ui import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from ...client.terminal_output import Event, Screen

_SHOWN_S = 0.8  # long enough to read a name, short enough not to be a pause
_TITLE_SAVE, _TITLE_BACK = b"\x1b[22;2t", b"\x1b[23;2t"
_CLEAN = b"\x1b[m\x1b[2J\x1b[H"


class Pipe:
    """Writes the bytes unchanged, and each mark as a line to another stream."""

    def begin(self) -> None:
        pass

    def skip(self, event: Event) -> None:
        pass

    def show(self, event: Event) -> float:
        _, code, value = event
        if code == "o" and isinstance(value, bytes):
            write(sys.stdout.fileno(), value)
        elif code == "m":
            printing.note(f"[{printing.safe(value)}]")
        return 0.0

    def clear(self) -> None:
        pass


class ReplayScreen:
    """Draws on a terminal, with an emulator that can restore the screen under the line of an act."""

    def __init__(self, fd: int, size: tuple[int, int]) -> None:
        self._fd, self._size = fd, size
        self._screen: Screen | None = None
        self._said = ""

    def __enter__(self) -> Self:
        write(self._fd, _TITLE_SAVE + _CLEAN)
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            write(self._fd, _TITLE_BACK)
        except OSError:
            pass
        if self._screen is not None:
            self._screen.close()

    def _picture(self) -> Screen:
        if self._screen is None:
            self._screen = picture(*self._size)
        return self._screen

    def skip(self, event: Event) -> None:
        """Apply an event from before the start to the emulator only."""
        _, code, value = event
        if code == "o" and isinstance(value, bytes):
            self._picture().feed(value)

    def begin(self) -> None:
        self.clear()

    def show(self, event: Event) -> float:
        """Draw an event; for an act, returns how long its line stays."""
        _, code, value = event
        if code == "o" and isinstance(value, bytes):
            self._picture().feed(value)
            write(self._fd, value)
        elif code == "m" and value != self._said:  # the same act again: once is enough
            self._said = str(value)
            cols, rows = self._size
            words = printing.safe(value)[: cols - 2]
            write(self._fd, f"\x1b]2;{words}\x1b\\\x1b[0m\x1b[?6l\x1b[{rows};1H\x1b[7m {words} \x1b[0m\x1b[K".encode())
            return _SHOWN_S
        return 0.0

    def clear(self) -> None:
        """Restore the screen under the line: cells, cursor, colours and modes."""
        write(self._fd, reset_sequence() + self._picture().restore(0))


def write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
