"""The session's terminal as the recorder uses it: what is printed, prompts, and lines that are typed."""

from __future__ import annotations

import os
import termios

_LINE_BYTES = 65536  # more than the kernel's line buffer: one read is one line
_CODE_SHOWN = 2000  # characters of a cell shown above its output; the rest is in its record


class Terminal:
    """Line mode with echo, so that people can type; `silent` for secrets."""

    def __init__(self) -> None:
        self._mode = termios.tcgetattr(0)
        # Ctrl-C must not make the terminal throw away output: a cell's end mark may be in it.
        self._mode[3] |= termios.ICANON | termios.ECHO | termios.ISIG | termios.NOFLSH
        termios.tcsetattr(0, termios.TCSANOW, self._mode)
        self._silent = False
        self.fresh = True  # whether the cursor is at the beginning of a line

    def write(self, text: str | bytes) -> None:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        if data:
            self.fresh = data.endswith(b"\n")
        while data:
            data = data[os.write(1, data) :]

    def mark(self, data: bytes) -> None:
        """Bytes that no terminal shows: the cursor stays where it is."""
        fresh = self.fresh
        self.write(data)
        self.fresh = fresh

    def line(self, text: str) -> None:
        """On a line of its own."""
        self.write(("" if self.fresh else "\n") + text + "\n")

    def prompt(self, count: int, *, more: bool = False) -> None:
        first = f"In [{count}]: "
        self.write(("" if self.fresh else "\n") + ("...: ".rjust(len(first)) if more else first))
        self.fresh = True  # what is typed after it ends with the typist's own newline

    def cell(self, count: int, code: str) -> None:
        """Put the cell's own text where the line that named it was echoed."""
        shown = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in code.rstrip("\n"))[:_CODE_SHOWN]
        first = f"In [{count}]: "
        self.write("\r\x1b[K" + first + shown.replace("\n", "\n" + "...: ".rjust(len(first))) + "\n")

    def silent(self, on: bool) -> None:
        """Whether what is typed is hidden. What was typed before a secret is asked for is no part of it."""
        if on == self._silent:
            return
        self._silent = on
        mode = list(self._mode)
        if on:
            mode[3] = int(mode[3]) & ~termios.ECHO
        termios.tcsetattr(0, termios.TCSAFLUSH if on else termios.TCSANOW, mode)

    def read(self) -> bytes:
        """One line as typed; empty for Ctrl-D on an empty line."""
        return os.read(0, _LINE_BYTES)
