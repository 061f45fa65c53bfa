"""Writes the log: append, resize, prune, sync. One writer: the keeper."""

from __future__ import annotations

import os
import zlib

from ..model.limits import COALESCE_US, RECORD_BYTES_MAX
from .layout import RECORD, RECORD_BYTES, RESIZE, segment_name, segments


class OutputLog:
    """An append-only byte stream. `start <= durable <= end`; none of them ever goes back.

    A full disk never stops the program: the oldest segments are removed, and if that is not enough, the bytes
    become a gap (counted in `dropped`) that readers see.
    """

    __slots__ = (
        "_count",
        "_crc",
        "_folder",
        "_idx",
        "_kept",
        "_kind",
        "_length",
        "_offset",
        "_out",
        "_retain",
        "_segment_bytes",
        "_starts",
        "_time_us",
        "_unwritten",
        "dropped",
        "durable",
        "end",
        "refused",
        "start",
    )

    def __init__(self, folder: str, end: int, segment_bytes: int, retain_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._retain = max(retain_bytes, 2 * segment_bytes)  # pruning never takes the segment being written
        self._starts = segments(folder)
        self._kept = sum(self._size(start) for start in self._starts)  # bytes on disk, gaps not counted
        self._out = self._idx = -1
        self._count = self._length = self._crc = self._time_us = self._offset = 0
        self._kind = -1
        self._unwritten: tuple[int, int, int] | None = None  # a size to be written with the next file
        self.dropped = 0
        self.refused = False  # a sync failed: the kernel may have dropped bytes, and the next sync would not report it
        self.start = self._starts[0] if self._starts else end
        self.end = self.durable = end
        # Files are created with the first byte: most of a thousand idle sessions need none. But an offset that no file
        # shows (a jump after a power loss) must be found again, whether anything is printed or not.
        if end > (self._starts[-1] + self._size(self._starts[-1]) if self._starts else 0):
            self._open_segment()

    def _open_segment(self) -> None:
        for fd in (self._out, self._idx):
            if fd >= 0:
                os.close(fd)
        self._out = self._idx = -1
        base = os.path.join(self._folder, segment_name(self.end))
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        self._idx = os.open(base + ".idx", flags, 0o600)
        self._out = os.open(base + ".out", flags | os.O_APPEND, 0o600)
        self._count = os.fstat(self._idx).st_size // RECORD_BYTES
        self._kind = -1
        if not self._starts or self._starts[-1] != self.end:
            self._starts.append(self.end)
        if self._unwritten is not None:
            self._put_size(*self._unwritten)
            self._unwritten = None
        self._prune()

    def _size(self, start: int) -> int:
        try:
            return os.stat(os.path.join(self._folder, segment_name(start) + ".out")).st_size
        except FileNotFoundError:
            return 0

    def _prune(self) -> None:
        while len(self._starts) > 1 and self._kept > self._retain:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        oldest = self._starts.pop(0)
        self._kept -= self._size(oldest)
        base = os.path.join(self._folder, segment_name(oldest))
        self.start = self._starts[0]
        for suffix in (".idx", ".out"):
            try:
                os.unlink(base + suffix)
            except FileNotFoundError:
                pass

    def append(self, data: bytes) -> None:
        """Add output at the end. Never raises for lack of space. `describe` follows, before the next append."""
        if self._out < 0 or self.end - self._starts[-1] >= self._segment_bytes:
            if not self._try(self._open_segment):
                self._lose(len(data))
                return
        written = self._write(data)
        self.end += written
        self._kept += written
        if written < len(data):
            self._lose(len(data) - written)

    def describe(self, kind: int, offset: int, data: bytes, now_us: int) -> None:
        """Index the bytes appended at `offset`: their stream, time and checksum."""
        if self._idx >= 0:
            self._index(kind, offset, data, now_us)

    def add(self, kind: int, data: bytes, now_us: int) -> None:
        """Append and index."""
        offset = self.end
        self.append(data)
        self.describe(kind, offset, data, now_us)

    def _write(self, data: bytes) -> int:
        done = 0
        while done < len(data):
            try:
                done += os.write(self._out, data[done:] if done else data)
            except OSError:
                if len(self._starts) < 2:
                    break
                self._drop_oldest()
        return done

    def _index(self, kind: int, offset: int, data: bytes, now_us: int) -> None:
        """One record per range: the newest is rewritten in place while output keeps coming within 10 ms."""
        if (
            kind == self._kind
            and self._offset + self._length == offset
            and now_us - self._time_us < COALESCE_US
            and self._length + len(data) <= RECORD_BYTES_MAX
        ):
            self._length += len(data)
            self._crc = zlib.crc32(data, self._crc)
            self._put(self._count - 1)
            return
        at = 0
        while at < len(data):
            piece = data[at : at + RECORD_BYTES_MAX] if len(data) > RECORD_BYTES_MAX else data
            self._offset, self._length, self._crc = offset + at, len(piece), zlib.crc32(piece)
            self._time_us, self._kind = now_us, kind
            self._put(self._count)
            self._count += 1
            at += len(piece)

    def _put(self, slot: int) -> None:
        record = RECORD.pack(self._offset, self._time_us, self._length, self._crc, self._kind, 0, 0)
        self._try(lambda: os.pwrite(self._idx, record, slot * RECORD_BYTES))

    def resized(self, cols: int, rows: int, now_us: int) -> None:
        """Record a new terminal size at the current offset, for replays."""
        # The first size waits for the first byte. A second one is a change, which readers of the log need.
        if self._idx < 0 and (self._unwritten is None or not self._try(self._open_segment)):
            self._unwritten = cols, rows, now_us
            return
        self._put_size(cols, rows, now_us)

    def _put_size(self, cols: int, rows: int, now_us: int) -> None:
        record = RECORD.pack(self.end, now_us, 0, 0, RESIZE, cols, rows)
        if self._try(lambda: os.pwrite(self._idx, record, self._count * RECORD_BYTES)):
            self._count += 1
            self._kind = -1

    def _lose(self, size: int) -> None:
        """Drop bytes without space on disk: the offset advances, and the next segment begins after the gap."""
        self.end += size
        self.dropped += size
        for fd in (self._out, self._idx):
            if fd >= 0:
                os.close(fd)
        self._out = self._idx = -1

    @staticmethod
    def _try(action: object) -> bool:
        try:
            action()  # type: ignore[operator]
        except OSError:
            return False
        return True

    def sync_targets(self) -> tuple[int, int]:
        """Duplicates of the current files, to fdatasync outside the keeper's loop; the caller closes them."""
        if self._out < 0 or self.refused:
            return -1, -1
        out = os.dup(self._out)
        try:
            return out, os.dup(self._idx)
        except OSError:
            os.close(out)
            raise

    def unsynced(self) -> list[str]:
        """Files of earlier segments that may hold bytes past `durable`: a flood fills several between two syncs."""
        later = zip(self._starts, self._starts[1:], strict=False)
        bases = [os.path.join(self._folder, segment_name(start)) for start, after in later if after > self.durable]
        return [base + suffix for base in bases for suffix in (".out", ".idx")]

    def close(self) -> None:
        try:
            sync_paths(self.unsynced())
            for fd in (self._out, self._idx):
                if fd >= 0:
                    os.fdatasync(fd)
        except OSError:
            self.refused = True
        if not self.refused:
            self.durable = self.end
        for fd in (self._out, self._idx):
            if fd >= 0:
                os.close(fd)
        self._out = self._idx = -1


def sync_paths(paths: list[str]) -> None:
    """Sync these files; ignores files that were pruned."""
    for path in paths:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)
