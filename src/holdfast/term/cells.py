"""Packed rows of the engine's snapshot, and what is read from them: text, and runs of cells that look the same.

A row's cells take 1, 2, 4 or 8 bytes each, whichever is the narrowest that fits the row. Rows stay packed until
they are read. Regular expressions find the runs and whole-row integers extract the characters: a Python loop over
the cells of a few thousand history rows would take the better part of a second.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# Style records are kept as their 16 bytes: foreground, background and underline colour (kind and three values
# each), flags, padding.
PLAIN = bytes(16)

# Stand-ins for cells without a character of their own; control characters are never stored in cells.
TAIL = "\x01"  # second half of a wide character
_HEAD = "\x02"  # last column left empty because a wide character did not fit and wrapped

# Masks with one lane per cell, for at most this many columns: a little more than a screen may have.
LANES = 2048
_CODEPOINT_4 = int.from_bytes(b"\xff\xff\x1f\x00" * LANES, "little")
_ONE_4 = int.from_bytes(b"\x01\x00\x00\x00" * LANES, "little")
_CODEPOINT_8 = int.from_bytes(b"\xff\xff\x1f\x00\x00\x00\x00\x00" * LANES, "little")
_ONE_8 = int.from_bytes(b"\x01\x00\x00\x00\x00\x00\x00\x00" * LANES, "little")
# Bits 42..43 (width) and 46..47 (prompt marks) do not change how a cell looks.
_LOOK_8 = int.from_bytes(b"\xff\xff\xff\xff\xff\x33\xff\xff" * LANES, "little")

# A cell's two lowest bits: 0 and 1 hold a character, 2 and 3 nothing but a background colour. A run is characters
# whose cells agree in the bytes after the character, or equal coloured cells.
_CHARACTER = b"[" + b"".join(re.escape(bytes([n])) for n in range(256) if n & 2 == 0) + b"]"
_RUNS_4 = re.compile(_CHARACTER + rb"[\s\S]{2}([\s\S])(?:" + _CHARACTER + rb"[\s\S]{2}\1)*|([\s\S]{4})\2*")
_RUNS_8 = re.compile(_CHARACTER + rb"[\s\S]{2}([\s\S]{5})(?:" + _CHARACTER + rb"[\s\S]{2}\1)*|([\s\S]{8})\2*")
_SYMBOLS = re.compile(rb"(?s)((.)\2*)")
_WIDTH_AND_MARKS = bytes(n for n in range(256) if n & 0x33 == 0)  # sixth bytes without style, link, protection
_JAMO = frozenset(map(chr, (*range(0x1160, 0x1200), *range(0xD7B0, 0xD800))))  # Korean vowels and finals: no width
_SEGMENTS = re.compile("\0+|[^\0]+")


class Link(NamedTuple):
    id: bytes  # empty where the program gave none
    uri: bytes


class Pen(NamedTuple):
    style: bytes = PLAIN
    link: Link | None = None
    protected: bool = False


DEFAULT_PEN = Pen()


class Run(NamedTuple):
    """Neighbouring cells of one look. Blank cells (erased or never printed) have a background but no text."""

    text: str
    cols: int
    pen: Pen
    clusters: bool = False  # one cell whose characters stick together only under mode 2027


@dataclass(slots=True)
class Page:
    cols: int
    payload: bytes
    rows: list[tuple[int, int, int]] = field(default_factory=list)  # flags, cell count, offset into payload
    styles: dict[int, bytes] = field(default_factory=dict)
    links: dict[int, Link] = field(default_factory=dict)
    suffixes: dict[int, dict[int, str]] = field(default_factory=dict)  # row -> column -> combining characters
    pens: dict[bytes, Pen] = field(default_factory=dict)  # by the bytes of a cell that say how it looks
    selections: dict[bytes, str] = field(default_factory=dict)  # by the same, what selects that pen

    def pen(self, key: bytes) -> Pen:
        """The pen of a cell, by its last byte (4-byte cells) or its last five (8-byte cells)."""
        pen = self.pens.get(key)
        if pen is None:
            word = int.from_bytes(key, "little")
            link = self.links.get(word >> 24) if word >> 21 & 1 else None
            pen = self.pens[key] = Pen(self.styles.get(word >> 2 & 0xFFFF, PLAIN), link, bool(word >> 20 & 1))
        return pen


@dataclass(slots=True)
class Row:
    page: Page
    index: int

    @property
    def wraps(self) -> bool:
        """The line goes on in the next row."""
        return bool(self.page.rows[self.index][0] & 1)

    @property
    def continues(self) -> bool:
        """The line began in the row before."""
        return bool(self.page.rows[self.index][0] & 2)

    @property
    def begins_printed(self) -> bool:
        """There is a character in the first column."""
        word = self._cell(0)
        return word & 2 == 0 and word >> 2 & 0x1FFFFF != 0

    @property
    def begins_colored(self) -> bool:
        """The character in the first column has a background colour."""
        return self.page.styles.get(self._cell(0) >> 26 & 0xFFFF, PLAIN)[4] != 0

    @property
    def begins_wide(self) -> bool:
        word = self._cell(0)
        return word >> 42 & 3 == 1 and word >> 2 & 0x1FFFFF != ord(" ")

    @property
    def ends_held(self) -> bool:
        """The last column is held free because a wide character did not fit and wrapped."""
        return self._cell(self.page.cols - 1) >> 42 & 3 == 3

    @property
    def ends_printed(self) -> bool:
        """There is a character in the last column."""
        word = self._cell(self.page.cols - 1)
        return word & 2 == 0 and (word >> 2 & 0x1FFFFF != 0 or word >> 42 & 3 == 2)

    def _cell(self, column: int) -> int:
        """The cell in the widest form; 0, a plain blank, beyond the row's end."""
        flags, count, start = self.page.rows[self.index]
        if column >= count:
            return 0
        width = flags >> 4 & 3
        offset = start + (column << width)
        word = int.from_bytes(self.page.payload[offset : offset + (1 << width)], "little")
        return word << 2 if width < 2 else word

    def text(self) -> str:
        """The row as text without trailing spaces; blank cells are spaces."""
        raw, width = self._raw()
        text = _text(raw, width)
        suffixes = self.page.suffixes.get(self.index)
        if suffixes:
            text = "".join(character + suffixes.get(column, "") for column, character in enumerate(text))
        return text.replace(TAIL, "").replace(_HEAD, "").replace("\0", " ").rstrip(" ")

    def symbols(self) -> tuple[str, list[tuple[bytes, bytes]]] | None:
        """The row for fast drawing: its text, a character per cell with TAILs, and (cells, key) of its runs.

        None where it holds more than characters in one of the page's first 63 styles; `runs` tells then.
        """
        raw, width = self._raw()
        if width == 3 and (raw[5::8].strip(_WIDTH_AND_MARKS) or raw[4::8].strip(b"\0") or raw[6::8].strip(b"\0")):
            return None
        text = _text(raw, width)
        if "\0" in text or _HEAD in text or self.index in self.page.suffixes:
            return None
        if width < 2:
            return text, [(raw[:: 1 << width], b"\0")]
        return text, _SYMBOLS.findall(raw[3 :: 1 << width])

    def runs(self) -> list[Run]:
        """All of the row except plain blanks at its end."""
        raw, width = self._raw()
        text = _text(raw, width)
        suffixes = self.page.suffixes.get(self.index)
        runs: list[Run] = []
        for first, end, pen, blank in self._spans(raw, width):
            piece = text[first:end]
            if blank:
                runs.append(Run("", end - first, pen))
            elif suffixes or "\0" in piece or _HEAD in piece:
                runs.extend(_split(piece, first, pen, suffixes or {}))
            elif piece:
                runs.append(Run(piece.replace(TAIL, ""), len(piece), pen))
        while runs and not runs[-1].text and runs[-1].pen == DEFAULT_PEN:
            runs.pop()
        return runs

    def _raw(self) -> tuple[bytes, int]:
        flags, count, start = self.page.rows[self.index]
        width = flags >> 4 & 3
        return self.page.payload[start : start + (count << width)], width

    def _spans(self, raw: bytes, width: int) -> Iterable[tuple[int, int, Pen, bool]]:
        """First column, end, pen and whether it is coloured blank, of each run."""
        if width < 2:
            yield 0, len(raw) >> width, DEFAULT_PEN, False
            return
        pattern, cells = (_RUNS_4, raw) if width == 2 else (_RUNS_8, _looks(raw))
        for match in pattern.finditer(cells):
            key = match[1]
            pen = _background(match[2]) if key is None else self.page.pen(key)
            yield match.start() >> width, match.end() >> width, pen, key is None


def _text(raw: bytes, width: int) -> str:
    """One character per cell, with NUL for blanks and the stand-ins above."""
    if width == 0:
        return raw.decode("latin-1")
    if width == 1:
        return raw.decode("utf-16-le")
    word = int.from_bytes(raw, "little")
    if width == 2:
        colors = word >> 1 & _ONE_4
        if colors:
            word ^= word & (colors * 0xFFFFFFFF)
        return (word >> 2 & _CODEPOINT_4).to_bytes(len(raw), "little").decode("utf-32-le")
    colors = word >> 1 & _ONE_8
    width_low, width_high = word >> 42 & _ONE_8, word >> 43 & _ONE_8
    text = word >> 2 & _CODEPOINT_8
    if colors:
        text ^= text & (colors * 0xFFFFFFFF)
    if width_high:
        heads = width_low & width_high
        text |= (width_high ^ heads) * ord(TAIL) | heads * ord(_HEAD)
    lanes = memoryview(text.to_bytes(len(raw), "little")).cast("I")[::2]
    # Under a national character set a wide character can become a wide space; it looks like two narrow ones.
    return lanes.tobytes().decode("utf-32-le").replace(" " + TAIL, "  ")


def _looks(raw: bytes) -> bytes:
    return (int.from_bytes(raw, "little") & _LOOK_8).to_bytes(len(raw), "little")


def _background(cell: bytes) -> Pen:
    """The look of a cell that has a background colour and nothing else."""
    word = int.from_bytes(cell[:4], "little")
    color = word >> 2 & 0xFFFFFF
    value = bytes((1, color & 0xFF, 0, 0)) if word & 1 == 0 else b"\x02" + color.to_bytes(3, "little")
    return Pen(PLAIN[:4] + value + PLAIN[8:])


def _split(piece: str, first: int, pen: Pen, suffixes: dict[int, str]) -> Iterator[Run]:
    """Cut a piece of a row that begins in column `first` at blanks and around cells with combining characters."""
    blank = Pen(PLAIN[:4] + pen.style[4:8] + PLAIN[8:])
    for match in _SEGMENTS.finditer(piece.replace(_HEAD, "")):
        segment, base = match[0], first + match.start()
        if segment[0] == "\0":
            yield Run("", len(segment), blank)
            continue
        done = 0
        for col in sorted(column - base for column in suffixes if base <= column < base + len(segment)):
            if col > done:
                yield Run(segment[done:col].replace(TAIL, ""), col - done, pen)
            suffix = suffixes[base + col]
            cols = 2 if segment[col + 1 : col + 2] == TAIL else 1
            yield Run(segment[col] + suffix, cols, pen, _needs_clusters(segment[col], suffix, cols))
            done = col + cols
        if done < len(segment):
            yield Run(segment[done:].replace(TAIL, ""), len(segment) - done, pen)


def _needs_clusters(base: str, suffix: str, cols: int) -> bool:
    """Terminals join marks and joiners anyway; the rest, and selectors that change the width, take mode 2027."""
    if not all(unicodedata.category(character) in ("Mn", "Me", "Cf") or character in _JAMO for character in suffix):
        return True
    wide = unicodedata.east_asian_width(base) in ("W", "F")
    return ("\ufe0f" in suffix and cols == 2 and not wide) or ("\ufe0e" in suffix and cols == 1 and wide)
