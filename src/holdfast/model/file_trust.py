"""Whose files are obeyed: the caller's own and root's, where no other user can put another in their place. Pure.

A home holds the keys, and its socket receives the caller's environment; a `holdfast.toml` names programs to start.
"""

from __future__ import annotations

import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Stat(Protocol):
        """What the kernel says of a file; `os.stat_result` is one."""

        @property
        def st_uid(self) -> int: ...

        @property
        def st_mode(self) -> int: ...


ROOT = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH  # an access list that lets another user write shows in the group's bits


def trusted(uid: int, me: int) -> bool:
    """Root could do anything to the caller anyway; no other user may."""
    return uid in (me, ROOT)


def open_to_all(folder: Stat) -> bool:
    """A folder that anyone can put a file into, such as /tmp: what lies in it says nothing about its owner."""
    return bool(folder.st_mode & stat.S_IWOTH)


def home_fault(path: str, home: Stat, above: list[tuple[str, Stat]], me: int) -> tuple[str, str] | None:
    """Why a home is refused, and what to do about it; None where it is the caller's alone."""
    if not trusted(home.st_uid, me):
        return f"{path} belongs to uid {home.st_uid}, you are {me}", "set HOLDFAST_HOME to a folder of yours"
    if home.st_mode & _OTHERS_WRITE:
        return f"other users can write to {path}", f"chmod 700 {path}, if no other user has changed anything in it"
    for folder, about in above:
        if open_to_all(about) and not about.st_mode & stat.S_ISVTX:
            return (
                f"any user can put another folder in the place of {path}",
                f"chmod o-w {folder}, or chmod +t {folder}",
            )
    return None
