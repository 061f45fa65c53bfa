"""The file of writes that were acknowledged ahead of SQLite's commit: its records, and who may use it.

A commit of SQLite writes every page it touched, six for a step of a few kilobytes. A foreseen write (base.Quick) is
known by its name, arguments and time, so a record of these, flushed, is as good: after a crash it is done again. The
file has a fixed length and is written over from its start; each write begins at a block of its own, so that a torn one
damages nothing that was acknowledged.

Records are numbered by chapter and place. A chapter is what SQLite commits at once, and the database holds the number
of the last one that it has (`user_version`): whatever is of a later chapter is still to be done.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import time
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ..model.errors import HoldfastError
from .base import Quick

_MAGIC = b"hfa1"
_HEAD = struct.Struct("<4sIIII")  # magic, chapter, place, length, checksum of the rest
_BLOCK = 4096  # what a disk writes as one, and a page of the system's cache
FILE_BYTES = 1 << 20  # at least a flushed commit in 256 writes: once it is full, SQLite's own log is flushed instead
CHAPTERS = 1 << 31  # they go round: SQLite keeps 31 bits of the number
_HERE, _DOOR = 0, 1  # bytes that are locked: every store that is open; one that wants to open
_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux
_KNOCK_S = 0.01
_start_writing: Any = getattr(ctypes.CDLL(None), "sync_file_range", None)  # Linux alone has it
if _start_writing is not None:
    _start_writing.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
_WRITE = 2  # SYNC_FILE_RANGE_WRITE
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, int, list[Any]]).decode


class Record(NamedTuple):
    chapter: int
    place: int
    name: str
    now: int
    args: tuple[Any, ...]

    @property
    def quick(self) -> Quick:
        return Quick(self.name, self.args, None)


def packed(chapter: int, place: int, quick: Quick, now: int) -> bytes:
    body = _encode((quick.name, now, quick.args))
    checksum = zlib.crc32(body, zlib.crc32(struct.pack("<III", chapter, place, len(body))))
    return _HEAD.pack(_MAGIC, chapter, place, len(body), checksum) + body


def padded(records: Sequence[bytes]) -> bytes:
    """One write of whole blocks: what is left of the last one is zeros."""
    data = b"".join(records)
    return data + bytes(-len(data) % _BLOCK)


def outstanding(data: bytes, chapter: int) -> list[Record]:
    """What a database at this chapter does not have yet, in order; nothing where the records do not join on to it."""
    found: list[Record] = []
    at = 0
    while (record := _record(data, at)) is not None:
        if found:
            last = found[-1]
            following = ((last.chapter, last.place + 1), ((last.chapter + 1) % CHAPTERS, 0))
            if (record.chapter, record.place) not in following:
                break  # from an earlier round
        elif record.place != 0:
            break
        found.append(record)
        at += _HEAD.size + int.from_bytes(data[at + 12 : at + 16], "little")
        if data[at : at + 4] != _MAGIC:
            at += -at % _BLOCK
    if not found or _later(found[0].chapter, chapter) > 1:
        return []
    return [record for record in found if _later(record.chapter, chapter) > 0]


def _later(chapter: int, than: int) -> int:
    """By how many chapters; 0 or less: not later."""
    return (chapter - than + CHAPTERS // 2) % CHAPTERS - CHAPTERS // 2


def _record(data: bytes, at: int) -> Record | None:
    if len(data) - at < _HEAD.size:
        return None
    magic, chapter, place, length, checksum = _HEAD.unpack_from(data, at)
    body = data[at + _HEAD.size : at + _HEAD.size + length]
    if magic != _MAGIC or len(body) != length:
        return None
    if zlib.crc32(body, zlib.crc32(data[at + 4 : at + 16])) != checksum:
        return None
    name, now, args = _decode(body)
    return Record(chapter, place, name, now, tuple(args))


class AheadFile:
    """The file, as one store has it open. It is used only while no other store has the database open.

    Its locks belong to the open file: two stores in one process count as two.
    """

    def __init__(self, path: str, wait_s: float) -> None:
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._enter(wait_s)
        except BaseException:
            os.close(self._fd)
            raise

    def _enter(self, wait_s: float) -> None:
        """Wait until whoever uses the file has committed what is in it; they see us at the door."""
        self._lock(fcntl.F_RDLCK, _DOOR)
        deadline = time.monotonic() + wait_s
        while not self._lock(fcntl.F_RDLCK, _HERE):
            if time.monotonic() > deadline:
                raise HoldfastError("busy", f"another program writes {self.path}", "close it there, then try again")
            time.sleep(_KNOCK_S)
        self._lock(fcntl.F_UNLCK, _DOOR)

    def alone(self) -> bool:
        """Whether no other store is open, or about to be; from here to `share` none can be."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _DOOR, 1, 0)
        if _FLOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, asked))[0] != fcntl.F_UNLCK:
            return False
        return self._lock(fcntl.F_WRLCK, _HERE)

    def share(self) -> None:
        self._lock(fcntl.F_RDLCK, _HERE)

    def _lock(self, kind: int, byte: int) -> bool:
        """An existing lock is changed, or left as it was."""
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, os.SEEK_SET, byte, 1, 0))
        except OSError as e:
            if e.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def content(self) -> bytes:
        return os.pread(self._fd, FILE_BYTES, 0)

    def fill(self) -> None:
        """Give it its length in zeros, on disk, so that a flush afterwards writes records and nothing else.

        One that has its length gets them as well: of a write that a power cut tore, later records may be there and the
        first one not. They would join on to the next first one of that chapter, which is another one.
        """
        self.put(bytes(FILE_BYTES), 0)
        os.fsync(self._fd)
        folder = os.open(os.path.dirname(self.path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def put(self, data: bytes, at: int) -> None:
        """On its way to the disk; `flush` waits for it."""
        if os.pwrite(self._fd, data, at) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if _start_writing is not None:
            _start_writing(self._fd, at, len(data), _WRITE)  # a hint: where it fails, the flush does all of it

    def flush(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)
