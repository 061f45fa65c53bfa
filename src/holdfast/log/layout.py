"""The log's file format: `<start>.out` is raw output, `<start>.idx` its records of 32 bytes.

A record holds the time, stream and CRC-32 of a range of output, or a new terminal size at that offset.
 Segments are named by the absolute offset of their first byte, so a missing or short
one is a gap that any reader can compute. Only the keeper writes; other processes may read at any time.
"""

from __future__ import annotations

import os
import struct

RECORD = struct.Struct("<QQIIBxHHxx")  # offset · time µs · length · crc · kind · cols · rows
RECORD_BYTES = RECORD.size

TERMINAL, STDOUT, STDERR, RESIZE = 0, 1, 2, 9  # kinds of record; the first three are streams


def segment_name(start: int) -> str:
    return f"{start:020d}"


def segments(folder: str) -> list[int]:
    """The start offsets of the existing segments, in order."""
    if not os.access(folder, os.F_OK):
        return []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:  # removed just now
        return []
    return sorted(int(n[:-4]) for n in names if n.endswith(".out") and n[:-4].isdigit())


def end_on_disk(folder: str) -> int:
    """The offset after the last byte on disk, where the next generation continues."""
    starts = segments(folder)
    if not starts:
        return 0
    return starts[-1] + os.stat(os.path.join(folder, segment_name(starts[-1]) + ".out")).st_size
