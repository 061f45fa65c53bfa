"""Small files that must be whole or absent: written beside, synced, renamed."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


def write_json(path: str, value: object, *, durable: bool = True) -> None:
    """Replace `path` atomically; with `durable` it is on disk, name and all, before this returns."""
    _replace(path, json.dumps(value, separators=(",", ":")).encode(), durable)
    if durable:
        _sync(os.path.dirname(path), os.O_DIRECTORY)


def _replace(path: str, data: bytes, durable: bool) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, data)
        if durable:
            os.fdatasync(fd)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    finally:
        os.close(fd)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def sync_file(path: str) -> None:
    """Put a file that was written before on disk, its name and its folder's name too."""
    folder = os.path.dirname(path)
    _sync(path)
    _sync(folder, os.O_DIRECTORY)
    _sync(os.path.dirname(folder), os.O_DIRECTORY)


def _sync(path: str, flags: int = 0) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_json(path: str) -> Json | None:
    """The object in `path`, or None when it is absent or not whole."""
    try:
        with open(path, "rb", buffering=0) as f:
            value = json.loads(f.read())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def write_bytes(path: str, data: bytes) -> None:
    """Replace `path` atomically; whole or absent, not necessarily durable (what it holds can be made again)."""
    _replace(path, data, durable=False)


def write_new(path: str, data: bytes) -> None:
    """A file that was not there, in one write: whole, or (a full disk) an error and no file."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, data)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def write_new_json(path: str, value: object) -> None:
    write_new(path, json.dumps(value, separators=(",", ":")).encode())
