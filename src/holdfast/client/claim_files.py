"""A claimed file as it is now: its hash, taken anew only where the file was touched since."""

from __future__ import annotations

import os

from ..model.limits import CLAIM_FILE_BYTES_MAX
from ..model.times import rfc3339
from .files.local_files import Opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

_CHUNK_BYTES = 1 << 20


def look(path: str, seen: Json) -> Json:
    """`exists`, `sha256`, `size`, `mark`; or `error` in a few words, where it cannot be told.

    The mark is what the kernel changes with every write: a file that still has it is the one that was hashed.
    """
    try:
        opened = Opened(path)
    except (FileNotFoundError, NotADirectoryError):
        return {"exists": False}
    except (OSError, ValueError) as e:
        words = (e.strerror or str(e)) if isinstance(e, OSError) else "its name cannot be one"
        return {"error": words}
    with opened, open(opened.fd, "rb", buffering=0, closefd=False) as file:
        found = os.fstat(opened.fd)
        if found.st_size > CLAIM_FILE_BYTES_MAX:
            return {"error": f"it has more than {CLAIM_FILE_BYTES_MAX:,} bytes"}
        mark = f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"
        told: Json = {"exists": True, "size": found.st_size, "mark": mark, "modified_at": rfc3339(found.st_mtime)}
        if seen.get("mark") == mark and seen.get("sha256"):
            return {**told, "sha256": seen["sha256"]}
        return {**told, "sha256": _hash(file)}


def is_folder(path: str) -> bool:
    return os.path.isdir(path)


def _hash(file: Any) -> str:
    import hashlib

    hashed = hashlib.sha256()
    while data := file.read(_CHUNK_BYTES):
        hashed.update(data)
    return hashed.hexdigest()
