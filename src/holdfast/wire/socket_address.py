"""Unix sockets by any path length: a path over 107 bytes is reached through a descriptor of its folder."""

from __future__ import annotations

import os

_PATH_MAX = 107  # sun_path has 108 bytes with its final NUL


def reachable(path: str) -> tuple[str, int]:
    """A path that fits a socket address, and the descriptor to close afterwards (-1 when none was needed)."""
    if len(os.fsencode(path)) <= _PATH_MAX:
        return path, -1
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}", folder
