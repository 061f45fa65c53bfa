"""Reads the engine's snapshot format (version 1) into plain values: all a terminal knows, of both its screens.

The engine's getters show the active screen alone. Its snapshot holds the rest too: the primary grid under an
alternate screen, saved cursors, keyboard stacks, character sets, tab stops. A snapshot is a ten-byte envelope and
a chain of records (tag, length, checksum, payload), all numbers little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from holdfast.term.cells import LANES, Link, Page, Pen, Row

MAGIC = b"GHOSTSNP\x01\x00"  # magic and format version; another version is another format

TERMINAL, SCREEN, PAGE, HISTORY, READY, FINISH, CONTINUATION = range(1, 8)  # record tags
RECORD = struct.Struct("<HII")
_TERMINAL_HEADER = struct.Struct("<HHIIHHHHBHHI" + "B" * 10 + "QQQ8s8s8sQQ")
_SCREEN_HEADER = struct.Struct("<HHQHHBB16sIHBB8sBBB")
_SAVED_CURSOR = struct.Struct("<HH16sBH")
_HINT_MAX = 1 << 24  # bytes for a page's combining characters or links; the engine allocates them unseen
_PAGE_HEADER = struct.Struct("<HHHHHHII")


class Charset(NamedTuple):
    slots: tuple[int, int, int, int]
    gl: int
    gr: int
    single_shift: int  # 0 for none, else slot + 1


@dataclass(slots=True)
class Cursor:
    x: int
    y: int
    pen: Pen
    pending_wrap: bool
    charset: Charset
    origin: bool = False  # known for saved cursors alone; the live value is a mode


@dataclass(slots=True)
class Grid:
    """One screen: its rows (history first), cursor and per-screen state."""

    cursor: Cursor
    cursor_style: int  # 0 bar, 1 block, 2 underline, 3 hollow block
    saved: Cursor | None
    protected_mode: int  # 0 never used, 1 ISO (SPA/EPA), 2 DEC (DECSCA)
    keyboard: tuple[int, ...]  # kitty keyboard flags, from the bottom of the stack to the current entry
    pages: list[Page] = field(default_factory=list)

    def rows(self) -> list[Row]:
        return [Row(page, index) for page in self.pages for index in range(len(page.rows))]


@dataclass(slots=True)
class State:
    cols: int
    rows: int
    region: tuple[int, int, int, int]  # top, bottom, left, right; inclusive, from 0
    alternate: bool
    cursor_is_default: bool
    mouse_event: int  # 0 none, 1 X10, 2 normal, 3 button, 4 any
    mouse_format: int  # 0 X10, 1 UTF-8, 2 SGR, 3 urxvt, 4 SGR pixels
    modes: int
    saved_modes: int
    default_modes: int
    background: tuple[int, int, int] | None  # as changed by the program (OSC 11); None where it did not
    foreground: tuple[int, int, int] | None
    cursor_color: tuple[int, int, int] | None
    tab_stops: list[int]
    palette: dict[int, tuple[int, int, int]]  # entries changed by the program (OSC 4)
    pwd: bytes
    title: bytes
    unfinished: bytes = b""
    screens: dict[int, Grid] = field(default_factory=dict)  # 0 primary, 1 alternate

    @property
    def active(self) -> Grid:
        return self.screens[int(self.alternate)]


def parse(data: bytes) -> State:
    """The state in `data`; raises ValueError for anything that is not a whole snapshot of this version."""
    try:
        return _parse(data)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, OverflowError) as error:
        raise ValueError(f"not a terminal snapshot: {error}") from error


def _parse(data: bytes) -> State:
    if not data.startswith(MAGIC):
        raise ValueError("not a terminal snapshot of a known version")
    records = _records(data)
    tag, payload = next(records, (0, b""))
    if tag != TERMINAL:
        raise ValueError("a terminal snapshot begins with the terminal's record")
    state = _terminal(payload)
    grid: Grid | None = None
    in_history = False
    for tag, payload in records:
        if tag == SCREEN:
            key, grid = _screen(payload)
            state.screens[key] = grid
        elif tag == HISTORY:
            grid = state.screens[int.from_bytes(payload[:2], "little")]
            in_history = True
        elif tag == PAGE and grid is not None:
            page = read_page(payload)
            if in_history:
                grid.pages.insert(0, page)  # history comes newest first
            else:
                grid.pages.append(page)
        elif tag == CONTINUATION:
            state.unfinished = payload
    if tag != FINISH or 0 not in state.screens or int(state.alternate) not in state.screens:
        raise ValueError("a terminal snapshot is cut off")
    return state


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    offset = len(MAGIC)
    while offset < len(data):
        tag, length, _checksum = RECORD.unpack_from(data, offset)
        offset += RECORD.size
        if offset + length > len(data):
            raise ValueError("a terminal snapshot is cut off")
        yield tag, data[offset : offset + length]
        offset += length


def _terminal(payload: bytes) -> State:
    h = _TERMINAL_HEADER.unpack_from(payload)
    cols, rows = h[0], h[1]
    offset = _TERMINAL_HEADER.size
    tabs = int.from_bytes(payload[offset : offset + (cols + 7) // 8], "little")
    offset += (cols + 7) // 8 + 256 * 3  # the palette as it was before any change follows the tab stops
    changed = int.from_bytes(payload[offset : offset + 32], "little")
    offset += 32
    palette: dict[int, tuple[int, int, int]] = {}
    for index in range(256):
        if changed >> index & 1:
            palette[index] = (payload[offset], payload[offset + 1], payload[offset + 2])
            offset += 3
    pwd, offset = _string(payload, offset)
    title, offset = _string(payload, offset)
    return State(
        cols=cols,
        rows=rows,
        region=(h[4], h[5], h[6], h[7]),
        alternate=h[9] == 1,
        cursor_is_default=bool(h[12]),
        mouse_event=h[17],
        mouse_format=h[18],
        modes=h[22],
        saved_modes=h[23],
        default_modes=h[24],
        background=_override(h[25]),
        foreground=_override(h[26]),
        cursor_color=_override(h[27]),
        tab_stops=[column for column in range(cols) if tabs >> column & 1],
        palette=palette,
        pwd=pwd,
        title=title,
    )


def _override(color: bytes) -> tuple[int, int, int] | None:
    return (color[5], color[6], color[7]) if color[4] else None


def _screen(payload: bytes) -> tuple[int, Grid]:
    h = _SCREEN_HEADER.unpack_from(payload)
    key, x, y, style, flags, pen, charset, protected, depth, stack = (
        h[0],
        h[3],
        h[4],
        h[5],
        h[6],
        h[7],
        h[9],
        h[10],
        h[11],
        h[12],
    )
    offset = _SCREEN_HEADER.size
    saved = None
    if h[15]:
        saved_x, saved_y, saved_pen, saved_flags, saved_charset = _SAVED_CURSOR.unpack_from(payload, offset)
        offset += _SAVED_CURSOR.size
        saved = Cursor(
            saved_x,
            saved_y,
            Pen(saved_pen, None, bool(saved_flags & 1)),
            bool(saved_flags & 2),
            _charset(saved_charset),
            bool(saved_flags & 4),
        )
    link, _ = _link(payload, offset)
    cursor = Cursor(x, y, Pen(pen, link, bool(flags & 2)), bool(flags & 1), _charset(charset))
    return key, Grid(cursor, style, saved, protected, tuple(stack[: depth + 1]))


def _charset(raw: int) -> Charset:
    slots = (raw & 3, raw >> 2 & 3, raw >> 4 & 3, raw >> 6 & 3)
    return Charset(slots, raw >> 8 & 3, raw >> 10 & 3, raw >> 12 & 7)


def read_page(payload: bytes) -> Page:
    cols, rows, styles, links, _styles_hint, _links_hint, *hints = _PAGE_HEADER.unpack_from(payload)
    if cols > LANES:
        raise ValueError(f"a terminal snapshot has {cols} columns, more than the {LANES} that are read")
    if max(hints) > _HINT_MAX:
        raise ValueError("a terminal snapshot asks for too much memory")
    page = Page(cols, payload)
    offset = _PAGE_HEADER.size
    for _ in range(styles):
        page.styles[int.from_bytes(payload[offset : offset + 2], "little")] = payload[offset + 2 : offset + 18]
        offset += 18
    for _ in range(links):
        key = int.from_bytes(payload[offset : offset + 2], "little")
        link, offset = _link(payload, offset + 2)
        if link is not None:
            page.links[key] = link
    for _ in range(rows):
        flags = payload[offset]
        count = payload[offset + 1] | payload[offset + 2] << 8
        page.rows.append((flags, count, offset + 3))
        offset += 3 + (count << (flags >> 4 & 3))
    (suffixes,) = struct.unpack_from("<I", payload, offset)
    offset += 4
    for _ in range(suffixes):
        row, col, count = struct.unpack_from("<HHH", payload, offset)
        offset += 6
        page.suffixes.setdefault(row, {})[col] = payload[offset : offset + 4 * count].decode("utf-32-le")
        offset += 4 * count
    return page


def _link(payload: bytes, offset: int) -> tuple[Link | None, int]:
    kind = payload[offset]
    offset += 1
    if kind == 0:
        return None, offset
    identifier = b""
    if kind == 1:
        offset += 4  # a number the engine made up for a link without an id
    else:
        identifier, offset = _string(payload, offset)
    uri, offset = _string(payload, offset)
    return Link(identifier, uri), offset


def _string(payload: bytes, offset: int) -> tuple[bytes, int]:
    (length,) = struct.unpack_from("<I", payload, offset)
    offset += 4
    return payload[offset : offset + length], offset + length
