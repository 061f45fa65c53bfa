"""Marks of workers that stopped on their own while the store was unreachable: these are not crashes.

A worker whose store is unreachable stops after a while, still holding its run. The mark stays in the home until the
next worker there can report it to the store.
"""

from __future__ import annotations

import contextlib
import os

FOLDER = "left"
_KEPT_S = 7 * 86400.0  # after a week it counts as a crash, which a person checks
_SHOWN_MAX = 100  # marks read at once, the newest: as many as holders are checked


def mark(home: str, process: str) -> None:
    """Mark a run that this process leaves and cannot release; disk errors are ignored."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.join(home, FOLDER), mode=0o700, exist_ok=True)
        os.close(os.open(os.path.join(home, FOLDER, process), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def marks(home: str, now: float) -> list[str]:
    """The holders with a mark; removes marks that are too old."""
    found: list[tuple[float, str]] = []
    try:
        with os.scandir(os.path.join(home, FOLDER)) as entries:
            for entry in entries:
                made = entry.stat(follow_symlinks=False).st_mtime
                if now - made > _KEPT_S:
                    os.unlink(entry.path)
                else:
                    found.append((made, entry.name))
    except OSError:
        pass  # there is none, or another worker removes them too
    return [name for _, name in sorted(found)[-_SHOWN_MAX:]]
