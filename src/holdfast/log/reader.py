"""Reads the log at any offset, also while it is being written: data, gaps, times, sizes.

Reading never consumes. Each range is checked against its CRC; one that does not match is a gap, and the
rest is returned.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from .layout import RECORD, RECORD_BYTES, RESIZE, end_on_disk, segment_name, segments

_INDEX_BYTES_READ = 8 << 10  # index read at a time: 256 records, up to 16 MB of a flood


class Piece:
    """A range of output: `data` on `stream`, or a gap (`data` is None), or a resize (`size`)."""

    __slots__ = ("corrupt", "data", "end", "offset", "size", "stream", "time_us")

    def __init__(
        self,
        offset: int,
        end: int,
        data: bytes | None,
        stream: int = 0,
        time_us: int = 0,
        size: tuple[int, int] | None = None,
        corrupt: bool = False,
    ) -> None:
        self.offset, self.end, self.data = offset, end, data
        self.stream, self.time_us, self.size, self.corrupt = stream, time_us, size, corrupt


class LogReader:
    """A view of one session's log folder. Cheap to make, safe while the keeper writes and prunes."""

    __slots__ = ("_folder",)

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @property
    def folder(self) -> str:
        return self._folder

    def bounds(self) -> tuple[int, int]:
        starts = segments(self._folder)
        return (starts[0], end_on_disk(self._folder)) if starts else (0, 0)

    def pieces(self, start: int, to: int, *, resizes: bool = False) -> Iterator[Piece]:
        """Everything from `start` up to `to`, in order; missing ranges as gaps.

        With `resizes` also the changes of the terminal's size, those at exactly `start` and `to` included: a reader
        that continues from `to` gets the latter again and must ignore them.

        `to` may be past what is on disk: the iterator then ends early, without a gap.
        """
        at = start
        starts = segments(self._folder)
        first = max(bisect_right(starts, at) - 1, 0)
        for n in range(first, len(starts)):
            if starts[n] > to or (starts[n] == to and not resizes):
                break
            if starts[n] > at:  # pruned, lost to a full disk, or cut by a power loss
                yield Piece(at, starts[n], None)
                at = starts[n]
            for piece in self._segment(starts[n], at, to, resizes):
                yield piece
                at = piece.end
        if at < to and starts and at < starts[-1]:
            yield Piece(at, min(to, starts[-1]), None)

    def _segment(self, segment: int, start: int, to: int, resizes: bool) -> Iterator[Piece]:
        base = os.path.join(self._folder, segment_name(segment))
        try:
            out = os.open(base + ".out", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return  # pruned during the read: the caller's next segment shows the gap
        try:
            idx = os.open(base + ".idx", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            idx = -1
        try:
            yield from self._records(out, idx, segment, start, to, resizes)
        finally:
            os.close(out)
            if idx >= 0:
                os.close(idx)

    def _records(self, out: int, idx: int, segment: int, start: int, to: int, resizes: bool) -> Iterator[Piece]:
        at = start
        slot = self._find(idx, start) if idx >= 0 else 0
        while idx >= 0:
            block = os.pread(idx, _INDEX_BYTES_READ, slot * RECORD_BYTES)
            whole = len(block) // RECORD_BYTES
            slot += whole
            for record in RECORD.iter_unpack(block[: whole * RECORD_BYTES]):
                offset, time_us, length, crc, kind, cols, rows = record
                if offset > to or (offset == to and not resizes):
                    return
                if kind == RESIZE:
                    if resizes and start <= offset:
                        yield Piece(offset, offset, b"", time_us=time_us, size=(cols, rows))
                    continue
                end = offset + length
                if end <= at or offset >= to:
                    continue
                if offset > at:  # no record covers these bytes (an index that could not be written)
                    yield from self._bare(out, segment, at, offset)
                yield self._checked(out, segment, offset, length, crc, kind, time_us, max(at, offset), to)
                at = min(end, to)
            if not whole:
                break
        size = os.fstat(out).st_size
        if at < min(to, segment + size):
            yield from self._bare(out, segment, at, min(to, segment + size))

    def _checked(
        self, out: int, segment: int, offset: int, length: int, crc: int, kind: int, time_us: int, at: int, to: int
    ) -> Piece:
        data = os.pread(out, length, offset - segment)
        end = min(offset + length, to)
        # The newest record may grow between reading it and reading its bytes; its first `length` bytes stay.
        if len(data) < length or zlib.crc32(data) != crc:
            return Piece(at, end, None, kind, time_us, corrupt=True)
        return Piece(at, end, data[at - offset : end - offset], kind, time_us)

    @staticmethod
    def _bare(out: int, segment: int, at: int, to: int) -> Iterator[Piece]:
        while at < to:
            data = os.pread(out, min(to - at, 1 << 16), at - segment)
            if not data:
                return
            yield Piece(at, at + len(data), data)
            at += len(data)

    @staticmethod
    def _find(idx: int, offset: int) -> int:
        """The slot of the last record that begins at or before `offset`: in the newest block, where most readers are,
        or by binary search on the file."""
        high = os.fstat(idx).st_size // RECORD_BYTES
        low = max(0, high - _INDEX_BYTES_READ // RECORD_BYTES)
        newest = os.pread(idx, (high - low) * RECORD_BYTES, low * RECORD_BYTES)
        slots = range(len(newest) // RECORD_BYTES)

        def begins(slot: int) -> int:
            return int(RECORD.unpack_from(newest, slot * RECORD_BYTES)[0])

        if slots and (low == 0 or begins(0) < offset):
            return max(low + bisect_left(slots, offset, key=begins) - 1, 0)
        low, high = 0, low
        while low < high:
            middle = (low + high) // 2
            raw = os.pread(idx, RECORD_BYTES, middle * RECORD_BYTES)
            if len(raw) == RECORD_BYTES and RECORD.unpack(raw)[0] < offset:
                low = middle + 1
            else:
                high = middle
        return max(low - 1, 0)

    def offset_at(self, time_us: int) -> int:
        """The offset of the first output at or after a time (for `logs --since`)."""
        for segment in segments(self._folder):
            path = os.path.join(self._folder, segment_name(segment) + ".idx")
            try:
                with open(path, "rb") as f:
                    data = f.read()
            except FileNotFoundError:
                continue
            for record in RECORD.iter_unpack(data[: len(data) // RECORD_BYTES * RECORD_BYTES]):
                if record[1] >= time_us and record[4] != RESIZE:
                    return int(record[0])
        return self.bounds()[1]
