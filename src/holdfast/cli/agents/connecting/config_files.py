"""Reads and replaces configuration files whole, through links and with their mode, and records what was added.

The record (connections.json in the home) holds what was written and where, never the rest of a file.
"""

from __future__ import annotations

import json
import os
import stat

from ....model.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

SIZE_MAX = 64 << 20  # bytes: the largest of these files holds a program's whole state, and is a few megabytes


def read(path: str) -> str | None:
    """The text with its line ends unchanged; None if there is no file."""
    try:
        with open(path, "rb") as file:
            data = file.read(SIZE_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise HoldfastError("failed", f"{path} cannot be read: {e.strerror}", "it was not changed") from None
    if len(data) > SIZE_MAX:
        raise HoldfastError("failed", f"{path} is larger than {SIZE_MAX >> 20} MiB", "it was not changed")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise HoldfastError("failed", f"{path} is not UTF-8 text", "fix it first; it was not changed") from None


def replace(path: str, before: str | None, after: str | None, private: bool) -> None:
    """Replace `before` with `after`, whole or not at all; None removes the file.

    A file that another program changed since it was read is left alone.
    """
    target = os.path.realpath(path)  # a link stays a link: what it points to is replaced
    try:
        if after is None:
            _unchanged(path, before)
            os.unlink(path)
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write(path, target, before, after, private)
    except OSError as e:
        raise HoldfastError("failed", f"{path} cannot be written: {e.strerror}", "it was not changed") from None


def _write(path: str, target: str, before: str | None, after: str, private: bool) -> None:
    temporary = f"{target}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if private else 0o666)
    try:
        with open(fd, "wb") as file:
            if before is not None:
                was = os.stat(target)
                os.fchmod(fd, stat.S_IMODE(was.st_mode))
                if (was.st_uid, was.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(fd, was.st_uid, was.st_gid)
            file.write(after.encode("utf-8"))
            file.flush()
            os.fsync(fd)
        _unchanged(path, before)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _unchanged(path: str, before: str | None) -> None:
    if read(path) != before:
        raise HoldfastError("conflict", f"{path} was changed by another program at the same time", "try again")


def missing_folders(path: str) -> list[str]:
    """The folders that must be created for a file, the deepest first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def remove_folders(folders: list[str]) -> None:
    """Remove folders that `hold connect` created and that are still empty."""
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError:
            return


class Records:
    """The record of what `hold connect` wrote, by file."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "connections.json")
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            found = {}
        self._all: Json = found if isinstance(found, dict) else {}

    def of(self, path: str) -> Json | None:
        found = self._all.get(path)
        return found if isinstance(found, dict) and {"splices", "after"} <= set(found) else None

    def keep(self, path: str, record: Json | None) -> None:
        """Write the record to disk before its file is changed."""
        if record is None and path not in self._all:
            return
        self._all.pop(path, None)
        if record is not None:
            self._all[path] = record
        try:
            self._write()
        except OSError as e:
            words = f"{self._path} cannot be written: {e.strerror}"
            raise HoldfastError("failed", words, "nothing was changed") from None

    def _write(self) -> None:
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        temporary = f"{self._path}.{os.getpid()}.tmp"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w") as file:
            json.dump(self._all, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self._path)
