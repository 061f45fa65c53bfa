"""A home in one file: which files belong into a backup, in which order, and what may come out of one again.

A backup is a tar.gz whose first member says what it is. It is taken while everything runs. What changes is replaced as a
whole or only grows, so a copy up to the size seen is consistent if the order is right: a session's records come before its
output (an end on record means that the output is complete), and an index before the bytes it describes.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile

from ..model.errors import HoldfastError, invalid
from ..model.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

FORMAT = 1
HEADER = "holdfast-backup.json"
_HEADER_BYTES_MAX = 1 << 16  # a handful of short values
_NAME_BYTES_MAX = 1024  # sessions/ses_…/exec/exe_….json is 60
_COPY_BYTES = 1 << 20
# What belongs to processes that run, not to the sessions: a restored home has none of them.
_LIVING = frozenset({"host.lock", "host.sock", "running.json", "host.log", "keeper.lock", "keeper.sock", "keeper.json"})
_LIVING_FOLDERS = frozenset({"roles", "links"})  # links point at this machine's agents


def belongs(relative: str) -> bool:
    """Whether a regular file of the home is part of a backup."""
    folders, name = os.path.split(relative)
    if name in _LIVING or name.endswith(".tmp") or name.startswith("host.sock."):
        return False
    return not _LIVING_FOLDERS & set(folders.split("/"))


def rank(relative: str) -> tuple[int, str]:
    """Records first, then the output's index, then the output."""
    if relative.endswith(".idx"):
        return 1, relative
    return (2 if relative.endswith(".out") else 0), relative


def contents(home: Home) -> Iterator[str]:
    """What to copy, relative to the home: folders before what is in them, each session's files in order."""
    yield from _folder(home, "")
    for top in ("sessions",):
        for name in sorted(_names(os.path.join(home.path, top))):
            yield from _folder(home, f"{top}/{name}")


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _folder(home: Home, below: str) -> Iterator[str]:
    """Everything of one folder; the home's own walk leaves out the sessions, which come one by one."""
    files: list[str] = []
    for folder, folders, names in os.walk(os.path.join(home.path, below)):
        inside = os.path.relpath(folder, home.path)
        inside = "" if inside == "." else inside + "/"
        folders[:] = sorted(f for f in folders if f != "roles")
        if inside:
            yield inside[:-1]
        if not below and "sessions" in folders and not inside:
            folders.remove("sessions")
            yield "sessions"
        files += [inside + n for n in names if belongs(inside + n)]
    yield from sorted(files, key=rank)


def header(home: Home, version: str, created_at: str, host: str | None) -> dict[str, Any]:
    return {"holdfast_backup": FORMAT, "version": version, "created_at": created_at, "home": home.path, "host": host}


def write(home: Home, target: IO[bytes], about: dict[str, Any]) -> dict[str, int]:
    """Write the backup; how many sessions, files and bytes are in it."""
    counts = {"sessions": 0, "files": 0, "bytes": 0}
    # Level 6: output compresses five times faster than at tarfile's default of 9, to nearly the same size.
    with tarfile.open(fileobj=target, mode="w|gz", compresslevel=6, format=tarfile.PAX_FORMAT) as tar:
        data = json.dumps(about).encode()
        tar.addfile(_member(HEADER, len(data), 0), io.BytesIO(data))
        for relative in contents(home):
            path = os.path.join(home.path, relative)
            try:
                # A socket or FIFO must be refused here and not block: nobody writes to it for us.
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as e:
                if isinstance(e, PermissionError):
                    raise HoldfastError("failed", f"cannot read {path}: {e.strerror}", "who owns the home?") from None
                continue  # gone meanwhile (pruned, removed), a socket, or a link: nothing to keep
            with open(fd, "rb") as f:
                seen = os.fstat(fd)
                if stat.S_ISDIR(seen.st_mode):  # pragma: no branch
                    continue
                if not stat.S_ISREG(seen.st_mode):
                    continue
                tar.addfile(_member(relative, seen.st_size, int(seen.st_mtime)), f)
            counts["files"] += 1
            counts["bytes"] += seen.st_size
            counts["sessions"] += relative.endswith("/manifest.json") and relative.count("/") == 2
    return counts
