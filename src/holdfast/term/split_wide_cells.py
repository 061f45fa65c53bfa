"""Keeps a state storable when a screen gets narrower.

The engine cuts wide characters of the alternate screen in half at the new border, and then cannot encode its state any
more. So they are replaced beforehand, in a snapshot that the terminal is made anew from. That is exact where writing to
the terminal would not be: it may be in the middle of a sequence, or on the other screen.
"""

from __future__ import annotations

import functools

from holdfast.term.snapshot import HISTORY, MAGIC, PAGE, RECORD, SCREEN, read_page

_ALTERNATE = 1
_WIDE_ROW = 3  # rows with wide characters have cells of 8 bytes
_SPACE = ord(" ") << 2
_LOOK = ~(0xFFFFFF << 2 | 3 << 42)  # all of a cell but its character and width
_CASTAGNOLI = 0x82F63B78


def without_halves(data: bytes, cols: int) -> bytes | None:
    """The snapshot `data` with spaces for wide characters that column `cols` would cut; None where there are none."""
    mended = bytearray(data)
    offset = len(MAGIC)
    alternate = changed = False
    while offset < len(data):
        tag, length, _checksum = RECORD.unpack_from(data, offset)
        start = offset + RECORD.size
        payload = data[start : start + length]
        if tag in (SCREEN, HISTORY):
            alternate = int.from_bytes(payload[:2], "little") == _ALTERNATE
        elif tag == PAGE and alternate:
            cut = [start + at for at in _cut_cells(payload, cols)]
            for at in cut:
                _blank(mended, at)
                _blank(mended, at + 8)
            if cut:
                checksum = crc32c(mended[offset : offset + 6] + mended[start : start + length])
                RECORD.pack_into(mended, offset, tag, length, checksum)
                changed = True
        offset = start + length
    return bytes(mended) if changed else None


def _cut_cells(payload: bytes, cols: int) -> list[int]:
    """Where in the page the cells are whose character begins in the last column that stays."""
    found = []
    for flags, count, start in read_page(payload).rows:
        if flags >> 4 & 3 == _WIDE_ROW and count > cols:
            at = start + (cols - 1) * 8
            if int.from_bytes(payload[at : at + 8], "little") >> 42 & 3 == 1:
                found.append(at)
    return found


def _blank(mended: bytearray, at: int) -> None:
    cell = int.from_bytes(mended[at : at + 8], "little")
    mended[at : at + 8] = (cell & _LOOK | _SPACE).to_bytes(8, "little")


def crc32c(data: bytes | bytearray) -> int:
    """The Castagnoli checksum of the snapshot's records; the standard library has another one only."""
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


@functools.cache
def _table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [value >> 1 ^ _CASTAGNOLI * (value & 1) for value in table]
    return table
