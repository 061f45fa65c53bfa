"""A terminal without a window: bytes in, screen out. The one face of the terminal engine."""

from __future__ import annotations

import re
import struct
from types import TracebackType
from typing import Any

from holdfast.term import describe, ghostty, modes, snapshot, split_wide_cells
from holdfast.term import restore as paint
from holdfast.term.cells import Row
from holdfast.term.ghostty import EngineError, GhosttyTerminal, TerminalEngineMissing
from holdfast.term.reset import reset_sequence

__all__ = ["Screen", "TerminalEngineMissing", "reset_sequence"]

# Larger than any real display at the smallest font; 2000x2000 cells are 32 MB, the most one screen may take.
SIZE_MAX = 2000
SCROLLBACK_LINES = 2000
# The engine stores rows in pages of this many cells and bytes and drops history by whole pages. Its limit on lines
# makes scrolling ten times slower than its limit on bytes, so bytes are what is limited: enough pages for the lines
# asked for, the one being filled and the one being dropped. Where nearly every cell has a style of its own, pages
# hold fewer lines.
PAGE_CELLS = 46_225
PAGE_BYTES = 419_430
PAGES_EXTRA = 2
# An escape sequence that is still open is part of the state. Past this length it is a picture or a clipboard,
# which the engine has no use for, or an attack: then only the fact that it is open is kept.
UNFINISHED_MAX = 256 * 1024
# One write to the engine adds at most this much to an open sequence before its length is checked.
WRITE_MAX = 64 * 1024
OPEN_MAX = UNFINISHED_MAX + 2 * WRITE_MAX  # so much may be open between two checks

# What programs are told when they ask for colours: light grey on black.
DEFAULT_FOREGROUND = (0xD0, 0xD0, 0xD0)
DEFAULT_BACKGROUND = (0x00, 0x00, 0x00)
TERMINFO_NAME = b"xterm-256color"

_KEYFRAME = struct.Struct("<4sIII")  # magic with version, scrollback lines, modifyOtherKeys level, bytes still open
_KEYFRAME_MAGIC = b"HFK1"

# Sequences the engine does not handle and programs do send, and the cheap test for their presence.
_LOCAL = re.compile(rb"\x1b\[>(?:4(?:;([0-9]?))?)?[mn]|\x1b\[(\?4m)|\x1b\[(\?6n)|\x1b\[(!p)|\x1b(c)")
_LOCAL_HINT = re.compile(rb"\x1b(?:\[[>?!]|c)")
_LOCAL_MAX = 7  # the longest of them, less its last byte: what must be carried over a chunk border

# A soft reset as VT220s and xterm do it, which neither moves the cursor nor clears the screen.
_SOFT_RESET = b'\x1b[?25h\x1b[4l\x1b[?1l\x1b>\x1b[?7h\x1b[m\x1b[0"q\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[?6l\x1b[?69l\x1b[r'

# The engine's name is not ours; and it offers a clipboard (terminfo Ms) that sessions do not have.
_REPLY_NAME = (b"\x1bP>|libghostty", b"\x1bP>|holdfast")
_REPLY_CLIPBOARD = re.compile(rb"\x1bP1\+r(4[Dd]73)=[0-9A-Fa-f]*\x1b\\")


class Screen:
    """A terminal of `cols` x `rows` cells. Not to be used from two threads at once."""

    def __init__(self, cols: int, rows: int, scrollback_lines: int = SCROLLBACK_LINES) -> None:
        _check_size(cols, rows)
        if scrollback_lines < 0:
            raise ValueError(f"scrollback_lines must not be negative, got {scrollback_lines}")
        self._setup(GhosttyTerminal.new(cols, rows), scrollback_lines, modify_other_keys=0)
        # Alternate scroll starts off, as in xterm, so that a program which turns it on is told apart.
        self._terminal.set_mode(ghostty.OPT_MODE_DEFAULT, modes.ALTERNATE_SCROLL.number, value=False)
        self._terminal.write(b"\x1b[?1007l\x1b[?1007s")

    def _setup(self, terminal: GhosttyTerminal, scrollback_lines: int, *, modify_other_keys: int) -> None:
        self._scrollback_lines = scrollback_lines
        self._modify_other_keys = modify_other_keys  # kept here: the engine tells level 2 from the rest, no more
        self._tail = b""
        self._open_bytes = 0
        self._use(terminal)

    def _use(self, terminal: GhosttyTerminal) -> None:
        self._terminal = terminal
        terminal.set_count(ghostty.OPT_CONTINUATION_MAX_BYTES, OPEN_MAX)
        terminal.set_count(ghostty.OPT_KITTY_IMAGE_STORAGE_LIMIT, 0)  # pictures could not be restored
        terminal.set_flag(ghostty.OPT_GLYPH_PROTOCOL, value=False)
        terminal.set_color(ghostty.OPT_COLOR_FOREGROUND, DEFAULT_FOREGROUND)
        terminal.set_color(ghostty.OPT_COLOR_BACKGROUND, DEFAULT_BACKGROUND)
        terminal.set_color(ghostty.OPT_COLOR_CURSOR, DEFAULT_FOREGROUND)
        terminal.set_string(ghostty.OPT_TERMINFO_NAME, TERMINFO_NAME)
        self._limit_scrollback()

    def _limit_scrollback(self) -> None:
        cols, rows = self._terminal.size
        pages = -(-(self._scrollback_lines + rows) // max(1, PAGE_CELLS // cols)) + PAGES_EXTRA
        limit = pages * PAGE_BYTES if self._scrollback_lines else 0
        self._terminal.set_count(ghostty.OPT_SCROLLBACK_MAX_BYTES, limit)

    # Bytes

    def feed(self, data: bytes) -> bytes:
        """Take program output; returns what the terminal answers to the program's queries, mostly nothing."""
        window = self._tail + data
        done = len(self._tail)
        if _LOCAL_HINT.search(window):
            for match in _LOCAL.finditer(window):
                if match.end() > done:
                    self._write(window[done : match.end()])
                    done = match.end()
                    self._handle_locally(match)
        self._write(window[done:] if done else window)
        self._tail = window[-_LOCAL_MAX:]
        return self._replies()

    def _replies(self) -> bytes:
        replies = self._terminal.take_replies()
        if b"\x1bP" in replies:
            replies = replies.replace(*_REPLY_NAME)
            replies = _REPLY_CLIPBOARD.sub(b"\x1bP0+r\\1\x1b\\\\", replies)
        return replies

    def _handle_locally(self, match: re.Match[bytes]) -> None:
        terminal = self._terminal
        level, ask_keys, ask_position, soft_reset, full_reset = match.groups()
        if ask_keys:
            terminal.replies += b"\x1b[>4;%dm" % self._modify_other_keys
        elif ask_position:
            x, y = self.cursor
            terminal.replies += b"\x1b[?%d;%dR" % (y + 1, x + 1)
        elif soft_reset:
            x, y = self.cursor
            terminal.write(_SOFT_RESET + b"\x1b[%d;%dH" % (y + 1, x + 1))
        elif full_reset:
            self._modify_other_keys = 0
        else:
            self._modify_other_keys = int(level or 0) if match[0].endswith(b"m") else 0

    def _write(self, data: bytes) -> None:
        terminal = self._terminal
        for start in range(0, len(data), WRITE_MAX):
            piece = data[start : start + WRITE_MAX]
            terminal.write(piece)
            if terminal.get_flag(ghostty.DATA_VT_GROUND):
                self._open_bytes = 0
                continue
            self._open_bytes += len(piece)
            if self._open_bytes > UNFINISHED_MAX:
                unfinished = terminal.unfinished()
                self._open_bytes = len(unfinished)
                if self._open_bytes > UNFINISHED_MAX:
                    self._abridge(unfinished)

    def _abridge(self, unfinished: bytes) -> None:
        """Forget what an overlong sequence said so far; keep that one of its kind is open."""
        opening = {b"\x1b]": b"\x1b]", b"\x1b[": b"\x1b[0<"}.get(unfinished[:2], b"\x1bX")
        self._terminal.write(b"\x18" + opening)
        self._open_bytes = len(opening)

    def resize(self, cols: int, rows: int) -> bytes:
        """Change the size; returns the report that a program which asked for one gets, mostly nothing."""
        _check_size(cols, rows)
        if cols < self.size[0]:
            body, unfinished = self._encode()
            mended = split_wide_cells.without_halves(body, cols)
            if mended is not None:
                cut = self._terminal
                self._use(GhosttyTerminal.decode(mended, *self.size, OPEN_MAX))
                self._terminal.write(unfinished)
                cut.close()
        autowrap = modes.AUTOWRAP.number
        reflows = self._terminal.get_mode(autowrap)
        if not reflows:  # else wide characters of the primary screen and its history would be cut in half
            self._terminal.set_mode(ghostty.OPT_MODE, autowrap, value=True)
        self._terminal.resize(cols, rows)
        if not reflows:
            self._terminal.set_mode(ghostty.OPT_MODE, autowrap, value=False)
        self._limit_scrollback()
        return self._replies()

    def compact(self) -> None:
        """Compress the scrollback in memory; worth it for a screen nobody will touch for a while."""
        self._terminal.compress()

    # Facts

    @property
    def size(self) -> tuple[int, int]:
        return self._terminal.size

    @property
    def cursor(self) -> tuple[int, int]:
        """Column and row, from 0."""
        terminal = self._terminal
        return terminal.get_number(ghostty.DATA_CURSOR_X), terminal.get_number(ghostty.DATA_CURSOR_Y)

    @property
    def cursor_visible(self) -> bool:
        return self._terminal.get_flag(ghostty.DATA_CURSOR_VISIBLE)

    @property
    def pastes(self) -> bool:
        """Whether the program takes pasted text as such (bracketed paste)."""
        return self._terminal.get_mode(modes.BRACKETED_PASTE.number)

    @property
    def title(self) -> str:
        return self._terminal.get_string(ghostty.DATA_TITLE).decode("utf-8", "replace")

    @property
    def alternate(self) -> bool:
        """Whether a full-screen program has switched to the alternate screen."""
        return self._terminal.get_number(ghostty.DATA_ACTIVE_SCREEN) == 1

    @property
    def at_ground(self) -> bool:
        """Whether no escape sequence and no character is half read."""
        return self._terminal.get_flag(ghostty.DATA_VT_GROUND)

    @property
    def forgets(self) -> bool:
        """Whether enough plain lines leave nothing of what is there now: no sequence is open, and no margin is set."""
        cols, rows = self.size
        return self.at_ground and self._state().region == (0, rows - 1, 0, cols - 1)

    def text(self) -> str:
        """The visible rows, one line each, without trailing spaces."""
        return "\n".join(row.text() for row in self._visible(self._state()))

    def cursor_line(self) -> str:
        """The text of the row that the cursor is on."""
        state = self._state()
        return self._visible(state)[state.active.cursor.y].text()

    def around_cursor(self) -> tuple[str, bool]:
        """The text of the cursor's row, and whether rows below it have some too."""
        state = self._state()
        rows, y = self._visible(state), state.active.cursor.y
        return rows[y].text(), any(row.text().strip() for row in rows[y + 1 :])

    def contents(self) -> str:
        """Scrollback and screen as lines: rows that were wrapped are joined, empty ones at the end dropped."""
        state = self._state()
        parts: list[str] = []
        for row in self._kept(state, state.active.rows()):
            text = row.text()
            if not (row.continues and parts and parts[-1]):
                parts.append("")
            parts[-1] += text.ljust(row.page.cols) if row.wraps else text + "\n"
        return "".join(parts).rstrip("\n ") + "\n" if parts else ""

    def modes(self) -> dict[str, object]:
        """What a client must have restored besides the text: modes, margins, keyboard, colours, title, …"""
        return modes.describe(self._state(), self._modify_other_keys)

    def dump(self) -> dict[str, Any]:
        """A full description of the state in JSON values, for comparing two screens cell by cell."""
        state = self._state()
        return describe.dump(state, self._kept(state, state.screens[0].rows()), self._modify_other_keys)

    def restore(self, history: int | None = None) -> bytes:
        """Bytes that bring a freshly reset terminal of the same size into this state.

        `history` limits the scrollback lines included. An escape sequence that is still open stands at the end, so
        these bytes must go through the same `TerminalFilter` as the live ones that follow them.
        """
        state = self._state()
        lines = self._scrollback_lines if history is None else max(0, min(history, self._scrollback_lines))
        return paint.restore(state, lines, self._modify_other_keys)

    # Keyframes

    def keyframe(self) -> bytes:
        """The exact state, with scrollback and unfinished sequences, for `from_keyframe` of the same version."""
        body, unfinished = self._encode()
        sizes = (self._scrollback_lines, self._modify_other_keys, len(unfinished))
        return _KEYFRAME.pack(_KEYFRAME_MAGIC, *sizes) + unfinished + body

    @classmethod
    def from_keyframe(cls, data: bytes) -> Screen:
        """The screen that `keyframe` described; raises ValueError for anything else."""
        if len(data) < _KEYFRAME.size or not data.startswith(_KEYFRAME_MAGIC):
            raise ValueError("not a keyframe of a known version")
        _magic, scrollback_lines, modify_other_keys, length = _KEYFRAME.unpack_from(data)
        unfinished, body = data[_KEYFRAME.size :][:length], data[_KEYFRAME.size + length :]
        state = snapshot.parse(body)
        _check_size(state.cols, state.rows)
        try:
            terminal = GhosttyTerminal.decode(body, state.cols, state.rows, OPEN_MAX)
        except EngineError as error:
            raise ValueError(f"not a keyframe: {error}") from error
        screen = cls.__new__(cls)
        screen._setup(terminal, scrollback_lines, modify_other_keys=modify_other_keys)
        screen._terminal.write(unfinished)
        screen._tail = (state.unfinished + unfinished)[-_LOCAL_MAX:]
        screen._open_bytes = len(state.unfinished) + length
        return screen

    # Life

    def close(self) -> None:
        self._terminal.close()

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _state(self) -> snapshot.State:
        body, unfinished = self._encode()
        state = snapshot.parse(body)
        state.unfinished += unfinished
        return state

    def _encode(self) -> tuple[bytes, bytes]:
        """The engine's snapshot, and the open sequence where the engine cannot put it in there."""
        terminal = self._terminal
        try:
            return terminal.encode(), b""
        except EngineError:
            # A string with eight-bit control characters inside. It is closed for the moment and opened again.
            unfinished = terminal.unfinished()
            if not unfinished:
                raise
            terminal.write(b"\x18")
            body = terminal.encode()
            terminal.write(unfinished)
            return body, unfinished

    def _visible(self, state: snapshot.State) -> list[Row]:
        return state.active.rows()[-state.rows :]

    def _kept(self, state: snapshot.State, rows: list[Row]) -> list[Row]:
        return rows[max(0, len(rows) - state.rows - self._scrollback_lines) :]


def _check_size(cols: int, rows: int) -> None:
    if not (1 <= cols <= SIZE_MAX and 1 <= rows <= SIZE_MAX):
        raise ValueError(f"a screen has 1 to {SIZE_MAX} columns and rows, not {cols}x{rows}")
