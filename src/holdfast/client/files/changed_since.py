"""What changed in a folder since a time: by the kernel's own time of change, which no program can set back.

Who changed it the kernel does not keep. A file that was only read, or that is gone, leaves no trace here.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from typing import Any

from ...model.limits import FOLDER_LOOK_S, FOLDER_LOOKED_MAX, FOLDER_TOLD_MAX
from ...model.times import rfc3339

Json = dict[str, Any]
# Caches and bookkeeping: they change with every look or build, and their thousands of files hide the few that matter.
SKIPPED = frozenset(
    {
        ".git",
        ".hg",
        ".cache",
        ".venv",
        "node_modules",
        "__pycache__",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
    }
)


def changed(root: str, since: float, home: str) -> Json:
    """The latest first. `whole` is false where a limit ended the look; `skipped` are folders that it never enters."""
    found: list[tuple[float, str, int]] = []
    own, ahead = os.path.realpath(home), [root]
    looked, ends, cut = 0, time.monotonic() + FOLDER_LOOK_S, False
    while ahead and not cut:
        for one in _entries(ahead.pop()):
            if looked >= FOLDER_LOOKED_MAX or time.monotonic() >= ends:
                cut = True  # in the middle of a folder, too: one alone may hold millions
                break
            looked += 1
            try:
                at = one.stat(follow_symlinks=False)
            except OSError:
                continue  # gone in this moment
            if stat.S_ISDIR(at.st_mode):
                if one.name not in SKIPPED and os.path.realpath(one.path) != own:
                    ahead.append(one.path)
            elif stat.S_ISREG(at.st_mode) and at.st_ctime >= since:
                found.append((at.st_ctime, os.path.relpath(one.path, root), at.st_size))
    found.sort(reverse=True)
    told = [{"path": _name(path), "size": size, "at": rfc3339(at)} for at, path, size in found[:FOLDER_TOLD_MAX]]
    whole = not cut and len(found) <= FOLDER_TOLD_MAX
    return {"root": _name(root), "since": rfc3339(since), "files": told, "whole": whole, "skipped": sorted(SKIPPED)}


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return  # not ours to see, or gone


def _name(path: str) -> str:
    """As JSON can hold it: bytes that are not UTF-8 are shown as escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
