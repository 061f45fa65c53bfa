"""The nearest holdfast.toml that may be obeyed: a file of the caller's or root's, found here or in a folder above."""

from __future__ import annotations

import os

from ...model import file_trust
from ...model.errors import HoldfastError
from ...model.limits import PROJECT_FILE_BYTES_MAX
from ...model.sessions.holdfast_toml import places
from ...system.owner_trust import open_regular


def nearest(cwd: str, *, readable: bool = False) -> tuple[str, str] | None:
    """(path, text), or None. With `readable`, one that cannot be read is passed over instead of refused.

    Another user's file is passed over where anyone can leave one (/tmp), and refused in a folder of theirs: it says
    which programs to start.
    """
    for path in places(cwd):
        try:
            fd = open_regular(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as e:
            if readable:
                continue
            raise HoldfastError("failed", f"cannot read {path}: {e.strerror or e}", "is it a text file?") from None
        with open(fd, "rb") as file:
            owner = os.fstat(fd).st_uid
            if not file_trust.trusted(owner, os.geteuid()):
                if file_trust.open_to_all(os.stat(os.path.dirname(path))):
                    continue
                words = f"{path} belongs to uid {owner}, you are {os.geteuid()}: it is not used"
                raise HoldfastError("not_allowed", words, "copy it if you trust it; --project NAME names a project")
            raw = file.read(PROJECT_FILE_BYTES_MAX + 1)
        if len(raw) > PROJECT_FILE_BYTES_MAX:
            raise HoldfastError(
                "failed", f"{path} has more than {PROJECT_FILE_BYTES_MAX:,} bytes", "is it the right file?"
            )
        try:
            return path, raw.decode()
        except UnicodeDecodeError as e:
            raise HoldfastError("failed", f"cannot read {path}: {e}", "it is a text file of yours") from None
    return None
