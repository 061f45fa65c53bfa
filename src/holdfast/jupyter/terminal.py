"""The session's terminal for the kernel runner: output, prompts, and typed lines."""

from __future__ import annotations

import os
import termios

_LINE_BYTES = 65536  # more than the kernel's line buffer: one read is one line
_CODE_SHOWN = 2000  # characters of a cell shown above its output; its record has all


class Terminal:
    """Line mode with echo for typing; `silent` for secrets."""

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
        """Write bytes that a terminal does not show; the cursor does not move."""
        fresh = self.fresh
        self.write(data)
        self.fresh = fresh

    def line(self, text: str) -> None:
        """Print a text on its own line."""
        self.write(("" if self.fresh else "\n") + text + "\n")

    def prompt(self, count: int, *, more: bool = False) -> None:
        first = f"In [{count}]: "
        self.write(("" if self.fresh else "\n") + ("...: ".rjust(len(first)) if more else first))
        self.fresh = True  # typed input after it ends with its own newline

    def cell(self, count: int, code: str) -> None:
        """Replace the echoed line that named the cell with the cell's text."""
        shown = "".join(c if c.isprintable() or c in "\n\t" else "�" for c in code.rstrip("\n"))[:_CODE_SHOWN]
        first = f"In [{count}]: "
        self.write("\r\x1b[K" + first + shown.replace("\n", "\n" + "...: ".rjust(len(first))) + "\n")

    def silent(self, on: bool) -> None:
        """Hide or show typed input; discards what was typed before a secret prompt."""
        if on == self._silent:
            return
        self._silent = on
        mode = list(self._mode)
        if on:
            mode[3] = int(mode[3]) & ~termios.ECHO
        termios.tcsetattr(0, termios.TCSAFLUSH if on else termios.TCSANOW, mode)

    def read(self) -> bytes:
        """Read one line as typed; empty for Ctrl-D on an empty line."""
        return os.read(0, _LINE_BYTES)
