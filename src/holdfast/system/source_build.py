"""Which source this process was started from: an id of it, and a cheap look at whether it is still the same."""

from __future__ import annotations

import functools
import os

from . import programs

ROOT = programs.ROOT
_LEFT_OUT = ("__pycache__", "static")  # what Python makes itself; the page, which is read from disk as it is
_ID_BYTES = 6  # two builds never meet by chance


def folders() -> dict[str, int]:
    """Every folder of the source, relative, and when something was last put into it or taken out."""
    found = {}
    for path, inside, _ in os.walk(ROOT):
        inside[:] = sorted(name for name in inside if name not in _LEFT_OUT)
        found[os.path.relpath(path, ROOT)] = os.stat(path).st_mtime_ns
    return found


def is_touched(root: object, seen: object) -> bool:
    """Whether the source is another than when `folders` of `root` said this. An upgrade replaces files, which shows in
    their folder; a file that is edited in place does not show, and changes the id all the same."""
    if root != ROOT or not isinstance(seen, dict):
        return True
    try:
        return any(os.stat(os.path.join(ROOT, path)).st_mtime_ns != at for path, at in seen.items())
    except OSError:
        return True


@functools.cache
def build_id() -> str:
    """A hash of the source on disk; taken once, when the first asks."""
    import hashlib

    whole = hashlib.blake2b(digest_size=_ID_BYTES)
    for path in sorted(folders()):
        with os.scandir(os.path.join(ROOT, path)) as inside:
            files = sorted((entry.name, entry.path) for entry in inside if entry.is_file())
        for name, file in files:
            with open(file, "rb", buffering=0) as f:
                data = f.read()
            whole.update(b"%s/%s %d\n%s" % (path.encode(), name.encode(), len(data), data))
    return whole.hexdigest()
