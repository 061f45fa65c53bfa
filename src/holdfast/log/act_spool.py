"""The spool: numbered records of operators' acts, kept until the host has them. One writer: the keeper.

A line is `CRC-32 in hex · space · JSON · newline`: a flipped bit or a torn tail costs that line and no other.

    {"base": 40}                      entries up to 40 are acknowledged and removed; numbers continue
    {"n": 41, "kind": "input", …}     an entry
    {"n": 41, "to_offset": …, …}      the rest of an entry that was written before its effect; follows it directly

Lines are written in one call each and not synced: they survive the keeper's death, not the machine's. Numbers never go
back, also across generations. Reading needs no keeper: `entries` serves the host after a session has ended.
"""

from __future__ import annotations

import errno
import json
import os
import zlib

from ..model.limits import SPOOL_ANSWER_BYTES, SPOOL_BYTES_MAX, SPOOL_SLACK_BYTES, SPOOL_SPARE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Json = dict[str, Any]

_READ_BYTES = 64 << 10
_LINE_BYTES_MAX = 64 << 10  # a reason and a note of a thousand escaped characters each, with a reserve


class Spool:
    """The writer. Entries `first` to `last` are not acknowledged; none if `first > last`."""

    __slots__ = ("_fd", "_from", "_marks", "_path", "_size", "first", "last")

    def __init__(self, path: str, floor: int = 0) -> None:
        """`floor` is a number that the host has received: the next one is higher, whatever is on disk."""
        self._path = path
        self._fd = -1  # opened with the first entry
        self._from = self._size = 0  # bytes: where the first entry that is not acknowledged begins, where the next goes
        self._marks = (0, 0)  # the newest entry that was read, and where it ends
        self.first, self.last = 1, 0
        self._load(floor)

    def _load(self, floor: int) -> None:
        for at, line in _lines(self._path):
            self._size = at + len(line)
            value = _value(line)
            if value is not None:
                self.first = max(self.first, int(value.get("base", 0)) + 1)
                self.last = max(self.last, int(value.get("n", 0)), int(value.get("base", 0)))
        self.last = max(self.last, floor)
        self.first = max(self.first, floor + 1)

    # -- writing

    @property
    def full(self) -> bool:
        return self._size - self._from >= SPOOL_BYTES_MAX

    def append(self, entry: Json, *, spare: bool = False) -> int:
        """Number an entry and write it; OSError when there is no room. `spare` is for those that cannot be refused."""
        room = SPOOL_BYTES_MAX + (SPOOL_SPARE_BYTES if spare else 0)
        if self._size - self._from >= room:
            raise OSError(errno.EDQUOT, "the spool is full")
        self._write({"n": self.last + 1, **entry})
        self.last += 1
        return self.last

    def amend(self, n: int, facts: Json) -> None:
        """Write the rest of entry `n`, the newest."""
        self._write({"n": n, **facts})

    def _write(self, value: Json) -> None:
        if self._fd < 0:
            self._open()
        self._put(_line(value))

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._fd, self._size)  # a torn tail
        if self._size == 0 and self.last:
            self._put(_line({"base": self.last}))
            self._from = self._size

    def _put(self, data: bytes) -> None:
        done = os.write(self._fd, data)
        if done < len(data):
            os.ftruncate(self._fd, self._size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += done

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # -- reading

    def after(self, n: int, most: int, before: int = 0) -> list[Json]:
        """Entries past `n`, at most `most` and a bounded number of bytes; none from number `before` on."""
        start = self._marks[1] if self._marks[0] and n >= self._marks[0] else self._from
        found, end = _collect(self._path, start, n, most, before)
        if found:
            self._marks = (int(found[-1]["n"]), end)
        return found

    def acknowledge(self, upto: int) -> None:
        """Entries up to this number may be removed."""
        if upto < self.first:
            return
        upto = min(upto, self.last)
        if upto == self._marks[0]:
            self._from = self._marks[1]
        else:
            _, self._from = _collect(self._path, self._from, upto, 1 << 30, upto + 1)
        self.first = upto + 1
        if self._from >= SPOOL_SLACK_BYTES:
            self._rewrite()

    def _rewrite(self) -> None:
        """Rewrite the file without acknowledged entries, whole or not at all."""
        temporary = f"{self._path}.tmp"
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            head = _line({"base": self.first - 1})
            rest = b"".join(line for _, line in _lines(self._path, self._from))
            if os.write(fd, head + rest) < len(head) + len(rest):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.replace(temporary, self._path)
        except OSError:  # no space for a second copy: keep the long file and retry later
            os.close(fd)
            os.unlink(temporary)
            return
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = fd
        self._from, self._size = len(head), len(head) + len(rest)
        self._marks = (0, 0)


def entries(path: str, after: int = 0, most: int = 1000) -> list[Json]:
    """The entries past number `after` of a spool without a writer. A range without an end was cut by a crash."""
    return _collect(path, 0, after, most, 0)[0]


def _collect(path: str, start: int, n: int, most: int, before: int) -> tuple[list[Json], int]:
    """Complete entries past `n` from byte `start` on, and where the last one read ends."""
    found: list[Json] = []
    end, size, base = start, 0, 0
    for at, line in _lines(path, start):
        value = _value(line)
        number = int(value.get("n", 0)) if value else 0
        if value is None or number <= max(n, base):
            base = max(base, int(value.get("base", 0)) if value else 0)
        elif before and number >= before:
            break
        elif found and found[-1]["n"] == number:
            found[-1].update(value)
        elif "kind" not in value:
            pass  # the rest of an entry whose first line is damaged
        elif len(found) >= most or size >= SPOOL_ANSWER_BYTES:
            break
        else:
            found.append(value)
            size += len(line)
        end = at + len(line)
    return found, end


def _line(value: Json) -> bytes:
    data = json.dumps(value, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(data), data)


def _value(line: bytes) -> Json | None:
    """The value of a line; None if its checksum does not match."""
    try:
        if int(line[:8], 16) != zlib.crc32(line[9:-1]):
            return None
        value = json.loads(line[9:])
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _lines(path: str, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """(position, line with its newline) from a position on; skips a last line without a newline."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        kept, at = b"", start
        while data := os.pread(fd, _READ_BYTES, at + len(kept)):
            kept += data
            *whole, kept = kept.split(b"\n")
            for line in whole:
                yield at, line + b"\n"
                at += len(line) + 1
            if len(kept) > _LINE_BYTES_MAX:  # no line is this long: the rest is not a spool
                return
    finally:
        os.close(fd)
