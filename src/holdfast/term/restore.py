"""Draws a terminal state as the bytes that bring a freshly reset terminal of the same size into it.

Order matters, and is the theory of this file. Rows are drawn first, under default modes, top down with line feeds,
so that history scrolls off the top as it once did. Then each screen gets its saved cursor, keyboard stack and
cursor; an alternate screen is entered over the finished primary one, so that leaving it later shows what it should.
Margins and modes that change drawing come last, then the cursor, because setting margins moves it. An escape
sequence that the program has not finished stands at the very end: the live bytes that follow complete it.

Blank cells are erased, not printed as spaces: that keeps their background, and copied text free of padding.
"""

from __future__ import annotations

import re

from holdfast.term.cells import DEFAULT_PEN, TAIL, Link, Pen, Row, Run
from holdfast.term.modes import (
    AUTOWRAP,
    CURSOR_BLINK,
    DRAWING_MODES,
    MOUSE_EVENTS,
    MOUSE_FORMATS,
    ORIGIN,
    PLAIN_MODES,
    SIDE_MARGINS,
    SYNC,
    Mode,
    is_set,
)
from holdfast.term.sgr import select
from holdfast.term.snapshot import Charset, Cursor, Grid, State

_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]")
_PLAIN_CHARSET = Charset((0, 0, 0, 0), 0, 2, 0)
_DESIGNATIONS = "BBA0"  # by the engine's charset number: UTF-8, ASCII, British, DEC special graphics
_SLOTS = "()*+"
_GL_SHIFTS = ("\x0f", "\x0e", "\x1bn", "\x1bo")
_GR_SHIFTS = ("", "\x1b~", "\x1b}", "\x1b|")
_SINGLE_SHIFTS = {3: "\x1bN", 4: "\x1bO"}
_BLOCK = 1
_CURSOR_CODES = {1: 2, 2: 4, 0: 6, 3: 2}  # steady block, underline, bar; the blinking one is one less


def restore(state: State, history: int, modify_other_keys: int) -> bytes:
    """The bytes for `state` with the last `history` rows of its scrollback."""
    painter = _Painter(state)
    painter.out.append("\x1b[?2026h\x1b[m\x1b[H\x1b[2J")  # shown all at once by terminals that can
    painter.primary(history)
    if state.alternate:
        painter.alternate()
    painter.terminal_wide(modify_other_keys)
    painter.last_things()
    return "".join(painter.out).replace(TAIL, "").encode("utf-8", "surrogateescape") + state.unfinished


class _Painter:
    def __init__(self, state: State) -> None:
        self.state = state
        self.out: list[str] = []
        self.pen = DEFAULT_PEN
        self.charset = _PLAIN_CHARSET
        self.protection = 2  # which protection sequences to use: DEC's unless the screen says ISO

    # Screens

    def primary(self, history: int) -> None:
        state, grid = self.state, self.state.screens[0]
        if not state.alternate and 1 in state.screens and state.screens[1].keyboard != (0,):
            self.out.append("\x1b[?1047h")  # keyboard flags stay with a screen that is not in use
            self.keyboard(state.screens[1])
            self.out.append("\x1b[?1047l")
        rows = grid.rows()
        rows = rows[max(0, len(rows) - state.rows - history) :]
        self.screen(grid, rows)
        rows = rows[-state.rows :]
        if state.alternate and grid.cursor_style != _BLOCK:
            self.cursor_shape(grid)  # terminals that keep one shape per screen
        if not state.alternate:
            if grid.saved is not None:
                self.save(grid.saved, rows)
        elif grid.saved is not None and _same_cursor(grid.saved, grid.cursor):
            self.place(grid.cursor, rows)
            self.out.append("\x1b[?1049h")
        else:
            if grid.saved is not None:
                self.save(grid.saved, rows)
            self.place(grid.cursor, rows)
            self.out.append("\x1b[?1047h")

    def alternate(self) -> None:
        grid = self.state.screens[1]
        rows = grid.rows()[-self.state.rows :]
        # What the cursor carries over from the primary screen differs between terminals: take all of it off.
        self.set_pen(DEFAULT_PEN)
        self.set_charset(_PLAIN_CHARSET)
        self.out.append("\x1b[m\x1b[H\x1b[2J")
        self.screen(grid, rows)
        if grid.saved is not None:
            self.save(grid.saved, rows)

    def screen(self, grid: Grid, rows: list[Row]) -> None:
        self.protection = grid.protected_mode or 2
        self.rows(rows)
        self.set_pen(DEFAULT_PEN)
        if grid.protected_mode and not grid.cursor.pen.protected:
            self.out.append("\x1bV\x1bW" if self.protection == 1 else '\x1b[1"q\x1b[0"q')
        self.keyboard(grid)

    def keyboard(self, grid: Grid) -> None:
        if grid.keyboard != (0,):
            self.out.append(f"\x1b[={grid.keyboard[0]}u")
            self.out.extend(f"\x1b[>{flags}u" for flags in grid.keyboard[1:])

    # Rows

    def rows(self, rows: list[Row]) -> None:
        history = len(rows) - self.state.rows
        last = len(rows) - 1
        if history <= 0:  # without history the empty rows at the end need no line feeds
            while last >= 0 and not rows[last].runs() and not (last and flows(rows[last - 1], rows[last])):
                last -= 1
        joined = False
        for index in range(last + 1):
            row = rows[index]
            if joined:
                self.wrap_into(row, held=rows[index - 1].ends_held)
            elif index:
                if self.pen.style[4]:
                    self.set_pen(Pen(link=self.pen.link, protected=self.pen.protected))
                self.out.append("\r\n")
            if not self.symbols(row, scrolls_away=index < history):
                self.runs(row.runs())
            joined = index < last and flows(row, rows[index + 1])

    def symbols(self, row: Row, *, scrolls_away: bool) -> bool:
        """The fast way for rows of nothing but characters; False where something asks for the careful one."""
        found = row.symbols()
        if found is None or self.pen.link or self.pen.protected:
            return False
        text, runs = found
        if not text:
            return True
        if not scrolls_away and not text.isascii():
            return False
        out, page, start = self.out, row.page, 0
        current = select(self.pen.style)
        for cells, key in runs:
            end = start + len(cells)
            selection = page.selections.get(key)
            if selection is None:
                selection = page.selections[key] = select(page.pen(key).style)
            if selection is not current:
                out.append(selection)
                current = selection
            out.append(text[start:end])
            start = end
        self.pen = page.pen(runs[-1][1])
        return True

    def runs(self, runs: list[Run]) -> None:
        out = self.out
        column = 0
        adrift = False  # the terminal's idea of the cursor's column may differ from ours
        for run in runs:
            visible = bool(run.text or run.pen.style[4])
            if adrift and visible:
                out.append(f"\x1b[{column + 1}G")
                adrift = False
            if visible and run.pen != self.pen:
                self.set_pen(run.pen)
            if not run.text:
                if visible:
                    out.append(f"\x1b[{run.cols}X")
                adrift = True
            else:
                out.append(f"\x1b[?2027h{run.text}\x1b[?2027l" if run.clusters else run.text)
                # Width tables differ between terminals; a column number after such text keeps the damage local.
                adrift = not run.text.isascii() or "\x7f" in run.text
            column += run.cols

    def wrap_into(self, row: Row, *, held: bool) -> None:
        """Let the terminal wrap by itself, so that it knows the two rows to be one line."""
        if held:
            self.out.append(f"\x1b[{self.state.cols}G")  # there a wide character does not fit
        if row.begins_printed and not row.begins_colored:
            return  # the row's own first character will do it
        # A coloured pen would fill the new row with its background, so a plain character wraps and is drawn over.
        self.set_pen(DEFAULT_PEN)
        if held:
            first = row.runs()[0]
            self.runs([first._replace(pen=DEFAULT_PEN) if first.clusters else Run(first.text[0], 2, DEFAULT_PEN)])
        else:
            self.out.append(" ")
        self.out.append("\r" if row.begins_printed else "\r\x1b[X")

    # Cursor

    def save(self, cursor: Cursor, rows: list[Row]) -> None:
        if cursor.origin:
            self.out.append("\x1b[?6h")
        self.place(cursor, rows)
        self.out.append("\x1b7")
        if cursor.origin:
            self.out.append("\x1b[?6l")
        self.set_pen(DEFAULT_PEN)
        self.set_charset(_PLAIN_CHARSET)

    def place(self, cursor: Cursor, rows: list[Row], top: int = 0, left: int = 0, right: int | None = None) -> None:
        """Put the cursor at its place with its pen.

        `top` and `left` are where origin mode counts from, `right` is the column after which lines wrap.
        """
        x, y = cursor.x, cursor.y
        if cursor.pending_wrap and top <= y < len(rows) and x == (self.state.cols - 1 if right is None else right):
            self.set_pen(DEFAULT_PEN)
            self.set_charset(_PLAIN_CHARSET)
            column = 0
            for run in rows[y].runs():
                reach = x + 1 - column
                # The cell under the cursor is drawn again: that leaves the cursor waiting to wrap, as it was.
                if run.text and (run.cols == reach or (len(run.text) == run.cols > reach > 0)):
                    text = run.text if run.cols == reach else run.text[:reach]
                    self.move(column - left, y - top)
                    self.runs([Run(text, reach, run.pen, run.clusters)])
                    break
                column += run.cols
            else:
                self.move(x - left, y - top)
        else:
            self.move(x - left, y - top)
        self.set_pen(cursor.pen)
        self.set_charset(cursor.charset)

    def move(self, x: int, y: int) -> None:
        self.out.append(f"\x1b[{max(y, 0) + 1};{max(x, 0) + 1}H")

    def set_pen(self, pen: Pen) -> None:
        old, self.pen = self.pen, pen
        if pen.link != old.link:
            self.out.append(_hyperlink(pen.link))
        if pen.protected != old.protected:
            if self.protection == 1:
                self.out.append("\x1bV" if pen.protected else "\x1bW")
            else:
                self.out.append(f'\x1b[{int(pen.protected)}"q')
        if pen.style != old.style:
            self.out.append(select(pen.style))

    def set_charset(self, charset: Charset) -> None:
        old, self.charset = self.charset, charset
        for slot, was, now in zip(_SLOTS, old.slots, charset.slots, strict=True):
            if _DESIGNATIONS[was] != _DESIGNATIONS[now]:
                self.out.append(f"\x1b{slot}{_DESIGNATIONS[now]}")
        if old.gl != charset.gl:
            self.out.append(_GL_SHIFTS[charset.gl])
        if old.gr != charset.gr:
            self.out.append(_GR_SHIFTS[charset.gr])

    # The terminal as a whole

    def terminal_wide(self, modify_other_keys: int) -> None:
        state, out = self.state, self.out
        if state.tab_stops != list(range(8, state.cols, 8)):
            out.append("\x1b[3g")
            out.extend(f"\x1b[{column + 1}G\x1bH" for column in state.tab_stops)
        for index, (red, green, blue) in state.palette.items():
            out.append(f"\x1b]4;{index};rgb:{red:02x}/{green:02x}/{blue:02x}\x1b\\")
        for number, color in ((10, state.foreground), (11, state.background), (12, state.cursor_color)):
            if color is not None:
                out.append(f"\x1b]{number};rgb:{color[0]:02x}/{color[1]:02x}/{color[2]:02x}\x1b\\")
        if state.title:
            out.append(f"\x1b]2;{_clean(state.title)}\x1b\\")
        if state.pwd:
            out.append(f"\x1b]7;{_clean(state.pwd)}\x1b\\")
        if modify_other_keys:
            out.append(f"\x1b[>4;{modify_other_keys}m")
        self.plain_modes()
        if not state.cursor_is_default:
            self.cursor_shape(state.active)
        elif state.alternate and state.screens[0].cursor_style != _BLOCK:
            out.append("\x1b[0 q")

    def cursor_shape(self, grid: Grid) -> None:
        self.out.append(f"\x1b[{_CURSOR_CODES[grid.cursor_style] - is_set(self.state.modes, CURSOR_BLINK)} q")

    def plain_modes(self) -> None:
        state = self.state
        for mode in PLAIN_MODES:
            now = is_set(state.default_modes, mode)
            saved = is_set(state.saved_modes, mode)
            if mode.private and saved != now:
                self.set_mode(mode, value=saved)
                self.out.append(f"\x1b[?{mode.number}s")
                now = saved
            if now != is_set(state.modes, mode):
                self.set_mode(mode, value=not now)
        self.mouse(MOUSE_EVENTS, state.mouse_event)
        self.mouse(MOUSE_FORMATS, state.mouse_format)

    def mouse(self, choices: dict[int, Mode], effective: int) -> None:
        """Of several mouse modes the last one set counts, and resetting any of them turns all off."""
        touched = self.state.modes | self.state.saved_modes
        if not any(is_set(touched, mode) for mode in choices.values()):
            return
        if effective:
            self.set_mode(choices[effective], value=True)
        else:
            unset = [mode for mode in choices.values() if not is_set(self.state.modes, mode)]
            if unset:
                self.set_mode(unset[0], value=False)

    def last_things(self) -> None:
        """Margins, modes that change drawing, and the cursor itself."""
        state, out = self.state, self.out
        top, bottom, left, right = state.region
        if is_set(state.modes, SIDE_MARGINS):
            self.set_mode(SIDE_MARGINS, value=True)
            if (left, right) != (0, state.cols - 1):
                out.append(f"\x1b[{left + 1};{right + 1}s")
        if (top, bottom) != (0, state.rows - 1):
            out.append(f"\x1b[{top + 1};{bottom + 1}r")
        if is_set(state.modes, ORIGIN):
            self.set_mode(ORIGIN, value=True)
        else:
            top = left = 0
        rows = state.active.rows()[-state.rows :]
        self.place(state.active.cursor, rows, top, left, right)
        for mode in DRAWING_MODES:
            if mode not in (ORIGIN, SIDE_MARGINS, SYNC) and is_set(state.modes, mode) != (mode == AUTOWRAP):
                self.set_mode(mode, value=mode != AUTOWRAP)
        out.append(_SINGLE_SHIFTS.get(state.active.cursor.charset.single_shift, ""))
        if not is_set(state.modes, SYNC):
            self.set_mode(SYNC, value=False)

    def set_mode(self, mode: Mode, *, value: bool) -> None:
        self.out.append(f"\x1b[{'?' if mode.private else ''}{mode.number}{'h' if value else 'l'}")


def flows(row: Row, below: Row) -> bool:
    """Whether drawing `below` right after `row` makes the terminal wrap, as it did when the program wrote them."""
    if not (row.wraps and below.continues):
        return False
    return below.begins_wide if row.ends_held else row.ends_printed


def _same_cursor(saved: Cursor, cursor: Cursor) -> bool:
    return (
        saved.x,
        saved.y,
        saved.pending_wrap,
        saved.charset,
        saved.pen.style,
        saved.pen.protected,
        saved.origin,
    ) == (
        cursor.x,
        cursor.y,
        cursor.pending_wrap,
        cursor.charset,
        cursor.pen.style,
        cursor.pen.protected,
        False,
    )


def _hyperlink(link: Link | None) -> str:
    if link is None:
        return "\x1b]8;;\x1b\\"
    parameters = f"id={_clean(link.id)}" if link.id else ""
    return f"\x1b]8;{parameters};{_clean(link.uri)}\x1b\\"


def _clean(data: bytes) -> str:
    """Text for the inside of an OSC sequence: control characters would end it early."""
    return _CONTROLS.sub("", data.decode("utf-8", "surrogateescape"))
