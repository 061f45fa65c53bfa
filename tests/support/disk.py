"""A disk that can lose power: one file in a FUSE file system, which knows what was flushed and what was only written.

Run as `python -m tests.support.disk FOLDER BYTES`. It says `ready`; for each line `SEED FILE` it writes to FILE what
this disk could hold had the power gone this moment: all that was flushed, and of the rest any sectors, none, or all.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import stat
import sys
import threading
from typing import Any

import mfusepy  # type: ignore[import-untyped]

NAME = "disk"
_SECTOR = 512  # the unit that a disk writes whole or not at all
_CHUNK = 1 << 16  # what is copied into an image, where anything was ever written


class Platter:
    """What is written, and which of it would be there after a power cut. No FUSE in here."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._now = mmap.mmap(-1, size)  # as it reads; anonymous memory costs nothing until it is touched
        self._safe = mmap.mmap(-1, size)  # as it was at the last flush
        self._pending: list[tuple[int, bytes]] = []
        self._touched: set[int] = set()
        self._lock = threading.Lock()

    def read(self, size: int, offset: int) -> bytes:
        with self._lock:
            return self._now[offset : min(offset + size, self.size)]

    def write(self, data: bytes, offset: int) -> int:
        with self._lock:
            data = data[: self.size - offset]
            self._now[offset : offset + len(data)] = data
            self._pending.append((offset, data))
            return len(data)

    def flush(self) -> None:
        with self._lock:
            for offset, data in self._pending:
                self._safe[offset : offset + len(data)] = data
                self._touched.update(range(offset // _CHUNK, (offset + len(data) - 1) // _CHUNK + 1))
            self._pending.clear()

    def cut(self, chance: random.Random, path: str) -> None:
        """An image of this moment. Of writes that were not flushed, each sector is there or not, in any mixture."""
        with self._lock, open(path, "wb") as image:
            image.truncate(self.size)
            for chunk in self._touched:
                image.seek(chunk * _CHUNK)
                image.write(self._safe[chunk * _CHUNK : (chunk + 1) * _CHUNK])
            share = chance.choice((0.0, 0.5, 0.9, 1.0))  # how far the disk had come with them
            for offset, data in self._pending:
                for at in range(0, len(data), _SECTOR):
                    if chance.random() < share:
                        image.seek(offset + at)
                        image.write(data[at : at + _SECTOR])


class Disk(mfusepy.Operations):  # type: ignore[misc]
    use_ns = True

    def __init__(self, platter: Platter) -> None:
        self._platter = platter

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
        if path == f"/{NAME}":
            return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": self._platter.size}
        raise mfusepy.FuseOSError(errno.ENOENT)

    def readdir(self, path: str, fh: int) -> list[str]:
        return [".", "..", NAME]

    def open(self, path: str, flags: int) -> int:
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return self._platter.read(size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return self._platter.write(data, offset)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._platter.flush()
        return 0


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    folder, size = sys.argv[1], int(sys.argv[2])
    platter = Platter(size)

    def answer() -> None:
        while not os.path.ismount(folder):
            threading.Event().wait(0.01)
        say("ready")
        for line in sys.stdin:
            seed, path = line.split()
            platter.cut(random.Random(int(seed)), path)
            say("done")

    threading.Thread(target=answer, daemon=True).start()
    mfusepy.FUSE(Disk(platter), folder, foreground=True, nothreads=True)


if __name__ == "__main__":
    main()
