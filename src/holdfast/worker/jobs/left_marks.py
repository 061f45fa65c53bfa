"""Marks of workers that ended by themselves while they could not tell the store: their deaths are no crashes.

A worker whose store is away ends after a while, with its run in hand. The mark stands in the home until the next worker
that looks for work from there can tell.
"""

from __future__ import annotations

import contextlib
import os

FOLDER = "left"
_KEPT_S = 7 * 86400.0  # whoever has not looked within a week finds a crash too many, and a person looks at that
_SHOWN_MAX = 100  # of one look: the newest; as many as holders are looked at


def mark(home: str, process: str) -> None:
    """This process leaves a run that it cannot give back. A disk that refuses is no reason to stay."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.join(home, FOLDER), mode=0o700, exist_ok=True)
        os.close(os.open(os.path.join(home, FOLDER, process), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def marks(home: str, now: float) -> list[str]:
    """Whose there are; what is too old to matter goes."""
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
        pass  # nobody left one, or another worker tidies as well
    return [name for _, name in sorted(found)[-_SHOWN_MAX:]]
