"""Which files are trusted: the caller's own and root's, if no other user can replace them. Pure.

A home holds the keys, and its socket receives the caller's environment; a `holdfast.toml` names programs to start.
"""

from __future__ import annotations

import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Stat(Protocol):
        """The facts of a file that decide; `os.stat_result` has them."""

        @property
        def st_uid(self) -> int: ...

        @property
        def st_mode(self) -> int: ...


ROOT = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH  # an ACL that lets another user write shows in the group's bits


def trusted(uid: int, me: int) -> bool:
    """Whether only the caller and root can change the file; root could do anything anyway."""
    return uid in (me, ROOT)


def open_to_all(folder: Stat) -> bool:
    """Whether every user can put files into the folder, such as /tmp."""
    return bool(folder.st_mode & stat.S_IWOTH)


def home_fault(path: str, home: Stat, above: list[tuple[str, Stat]], me: int) -> tuple[str, str] | None:
    """Why a home is refused, and what to do; None if only the caller can change it."""
    if not trusted(home.st_uid, me):
        return f"{path} belongs to uid {home.st_uid}, you are {me}", "set HOLDFAST_HOME to a folder that you own"
    if home.st_mode & _OTHERS_WRITE:
        return f"other users can write to {path}", f"chmod 700 {path}, if no other user has changed anything in it"
    for folder, about in above:
        if open_to_all(about) and not about.st_mode & stat.S_ISVTX:
            return (
                f"any user can replace {path}",
                f"chmod o-w {folder}, or chmod +t {folder}",
            )
    return None
