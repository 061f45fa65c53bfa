"""A home in one file: which files belong into a backup, in which order, and what may come out of one again.

A backup is a tar.gz whose first member says what it is. It is taken while everything runs. Files in a home are replaced
as a whole or only grow, so copies up to the sizes seen are consistent if their order is right: a session's records
before its output (an end on record then means that the output is complete), an index before the bytes it describes.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import pathlib
import re
import stat
import tarfile
import zlib

from ...model.errors import HoldfastError, invalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

FORMAT = 1
HEADER = "holdfast-backup.json"
LEDGER, HEAD = "host.db", "journal.head"
_HEADER_BYTES_MAX = 1 << 16  # a handful of short values, or what tar says of a member before it
_NAME_BYTES_MAX = 1024  # sessions/ses_…/exec/exe_….json is 60
_COPY_BYTES = 1 << 20
_PADDING_BYTES_MAX = 1 << 20  # tar fills its last block of 10 kB
_MEMBERS_MAX = 1_000_000  # a home of ten thousand sessions has a few hundred thousand; empty ones pack to a byte each
_MEMBERS = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE)
# What belongs to running processes, or to this machine's agents: a restored home has none of it.
_LIVING = re.compile(
    r"host\.(lock|log|reserve|sock)(\..*)?|host\.db-(wal|shm|journal)|work\.db-(wal|shm)|running\.json|web\.(json|lock|log)|roles|keeper\.(lock|sock|json)|links/.*"
    r"|.*\.tmp",
    re.DOTALL,
)


def belongs(relative: str) -> bool:
    """Whether something in the home is part of a backup."""
    session = re.fullmatch(r"sessions/[^/]+/(.*)", relative, re.DOTALL)
    return not _LIVING.fullmatch(session[1] if session else relative)


def contents(home: str) -> Iterator[str]:
    """What to copy, relative to the home, folders too. Lazy: a folder is listed when everything before it is copied.

    Sorted names give the order: a session's own files, then exec/, then out/ with each .idx before its .out.
    """
    for folder, folders, names in os.walk(home):
        inside = os.path.relpath(folder, home)
        prefix = "" if inside == "." else inside + "/"
        folders[:] = sorted(f for f in folders if belongs(prefix + f))
        if prefix:
            yield inside
        # A head that is older than the ledger is proof of a part of it; one that is newer would look like a cut.
        yield from (prefix + n for n in sorted(names, key=lambda n: (n != HEAD, n)) if belongs(prefix + n))


def write(home: str, target: IO[bytes], about: dict[str, Any]) -> dict[str, int]:
    """Write the backup of `home`; how many sessions, files and bytes are in it."""
    counts = {"sessions": 0, "files": 0, "bytes": 0}
    # Level 6: several times faster on terminal output than the default of 9, to nearly the same size.
    with (
        gzip.GzipFile(fileobj=target, mode="wb", compresslevel=6) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        first = json.dumps({"holdfast_backup": FORMAT, **about}).encode()
        tar.addfile(_member(HEADER, tarfile.REGTYPE, len(first)), io.BytesIO(first))
        for relative in contents(home):
            add = _add_database if relative in (LEDGER, "work.db") else _add
            size = add(tar, os.path.join(home, relative), relative)
            if size is not None:
                counts["files"] += 1
                counts["bytes"] += size
                counts["sessions"] += bool(re.fullmatch(r"sessions/ses_[^/]+/manifest\.json", relative))
    return counts


def _add(tar: tarfile.TarFile, path: str, relative: str) -> int | None:
    """Copy one file up to its present size, or note a folder; None where there is no file to keep."""
    try:
        # A FIFO must not make us wait for its writer, and a link not lead us elsewhere.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError as e:
        raise HoldfastError("failed", f"cannot read {path}: {e.strerror}", "who owns the home?") from None
    except OSError:
        return None  # gone meanwhile (pruned, removed), a socket, or a link
    try:
        seen = os.fstat(fd)
        if stat.S_ISDIR(seen.st_mode):
            tar.addfile(_member(relative, tarfile.DIRTYPE, 0))
        if not stat.S_ISREG(seen.st_mode):
            return None
        with open(fd, "rb", closefd=False) as f:
            tar.addfile(_member(relative, tarfile.REGTYPE, seen.st_size, seen.st_mtime), f)
        return seen.st_size
    finally:
        os.close(fd)


def _add_database(tar: tarfile.TarFile, path: str, relative: str) -> int | None:
    """A database as one commit left it: a copy of its bytes would miss what is still in the log beside them."""
    import sqlite3
    import tempfile
    from contextlib import closing

    with tempfile.TemporaryDirectory(prefix="holdfast-backup-") as folder:
        copy = os.path.join(folder, relative)
        try:
            uri = f"{pathlib.Path(path).as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
        except sqlite3.Error as e:
            raise HoldfastError("failed", f"cannot copy {path}: {e}", "hold doctor looks at it") from None
        return _add(tar, copy, relative)


def _member(name: str, kind: bytes, size: int, mtime: float = 0) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.size, member.mtime = kind, size, int(mtime)
    member.mode = 0o700 if kind == tarfile.DIRTYPE else 0o600
    return member


def check_member(name: str, kind: bytes) -> str:
    """The relative path of a member, if it is one that a backup of ours can hold; raises for anything else."""
    made_by = "it was not made by hold backup; nothing was changed"
    if kind not in _MEMBERS:
        raise invalid(f"the backup holds {name[:100]!r}, which is neither file nor folder", made_by)
    plain = not any(part in ("", ".", "..") for part in name.split("/")) and "\0" not in name
    if not plain or len(os.fsencode(name)) > _NAME_BYTES_MAX or not belongs(name):
        raise invalid(f"the backup holds {name[:100]!r}, which is no name in a home's backup", made_by)
    return name


class _Plain(tarfile.TarInfo):
    """A member as our own backups have them. What tarfile would read into memory whole, or without an end, is refused
    before it does: a long extended header, one for all members, the map of a sparse file."""

    def _proc_member(self, tar: tarfile.TarFile) -> Any:  # the method that tarfile names for subclasses to override
        if self.type == tarfile.GNUTYPE_SPARSE:
            check_member(self.name, self.type)
        if self.type == tarfile.XGLTYPE or (self.type not in _MEMBERS and self.size > _HEADER_BYTES_MAX):
            raise ValueError(f"a header of {self.size:,} bytes")
        return super()._proc_member(tar)  # type: ignore[misc]

    def _proc_gnusparse_10(self, *_: object) -> None:
        check_member(self.name, tarfile.GNUTYPE_SPARSE)


def unpack(source: IO[bytes], folder: str, room_bytes: int) -> dict[str, Any]:
    """Fill the new, empty `folder` from a backup; what the backup says of itself, with how many files it had.

    Only plain files and folders with plain names come out, made by us with our own modes; links, devices, sparse files
    and names that lead elsewhere are refused, whatever order they come in.
    """
    try:
        # gzip's own reader, because tarfile's does not look at the checksum.
        with (
            gzip.GzipFile(fileobj=source) as packed,
            tarfile.open(fileobj=packed, mode="r|", tarinfo=_Plain) as tar,
        ):
            members = iter(tar)
            about = _read_header(tar, next(members, None))
            for n, member in enumerate(members):
                tar.members.clear()  # type: ignore[attr-defined]  # it keeps all of them, and none is asked for again
                if n == _MEMBERS_MAX:
                    raise ValueError(f"it has more than {_MEMBERS_MAX:,} files")
                name = check_member(member.name, tarfile.GNUTYPE_SPARSE if member.issparse() else member.type)
                path = os.path.join(folder, name)
                if member.isdir():
                    os.makedirs(path, mode=0o700, exist_ok=True)
                    continue
                room_bytes -= member.size
                if room_bytes < 0:
                    raise HoldfastError("failed", "the backup does not fit on this disk", "nothing was changed")
                _extract(tar, member, path)
                about["files"] += 1
            if len(packed.read(_PADDING_BYTES_MAX)) == _PADDING_BYTES_MAX:  # reaches the checksum at the very end
                raise ValueError("there is something behind its end")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError) as e:
        if isinstance(e, OSError) and e.errno:
            raise HoldfastError("failed", f"it cannot be unpacked: {e.strerror}", "nothing was changed") from None
        raise invalid(f"the backup is damaged: {str(e)[:200]}", "nothing was changed") from None
    return about


def _read_header(tar: tarfile.TarFile, member: tarfile.TarInfo | None) -> dict[str, Any]:
    data = tar.extractfile(member) if member and member.name == HEADER and member.size <= _HEADER_BYTES_MAX else None
    about = json.load(data) if data is not None else None
    if not isinstance(about, dict) or "holdfast_backup" not in about:
        raise invalid("that is no backup of a Holdfast home", "hold backup FILE makes one")
    if about["holdfast_backup"] != FORMAT:
        found = str(about["holdfast_backup"])[:20]
        raise invalid(f"the backup is of format {found}, this version reads {FORMAT}", "upgrade Holdfast")
    return {**about, "files": 0}


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    data = tar.extractfile(member)
    assert data is not None  # checked to be a regular file
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as f:
        left = member.size
        while left:
            piece = data.read(min(left, _COPY_BYTES))
            if not piece:
                raise EOFError(f"{member.name} is cut short")
            f.write(piece)
            left -= len(piece)
        f.flush()
        os.fdatasync(fd)
    os.utime(path, (member.mtime, member.mtime))
