"""Files that are named to this process, opened so that nothing waits and nothing happens by the opening."""

from __future__ import annotations

import os

from ...model.sessions.isolation import too_wide
from ...system.owner_trust import open_regular
from .project_file import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self


class Opened:
    """A regular file, open to be read; `path` is its name by the kernel's word, whatever links led to it."""

    def __init__(self, path: str) -> None:
        self.fd = open_regular(path)
        self.path = os.readlink(f"/proc/self/fd/{self.fd}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self.fd)


def beginning(file: Opened, most: int) -> bytes:
    """Up to so many bytes of it."""
    with open(file.fd, "rb", closefd=False) as f:
        return f.read(most)


def project_root(cwd: str) -> str | None:
    """The folder of the project around `cwd`: that of holdfast.toml, else of the repository, else this one. None where
    that would be a whole home or system."""
    found = nearest(cwd, readable=True)
    root = os.path.dirname(found[0]) if found else _repository(cwd) or cwd
    real = os.path.realpath(root)
    return None if too_wide(real, os.path.realpath(os.path.expanduser("~"))) else real


def _repository(cwd: str) -> str | None:
    folder = cwd
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder
