"""Every error a user can meet: one root, a stable code, one line of what happened and one of what to do."""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# code -> exit status of the command line (the contract's table).
EXIT_STATUS = {
    "failed": 1,
    "internal": 1,
    "host_gone": 1,  # the daemon died under a request; what became of it is to be asked
    "usage": 2,
    "invalid": 2,
    "not_found": 3,
    "not_allowed": 4,
    "conflict": 5,
    "busy": 5,
    "stale_epoch": 5,
    "input_closed": 5,  # the program has closed its input, and takes nothing more
    "fenced": 5,  # another worker took over, or the lease ran out: nothing more of this one is kept
    "in_doubt": 5,  # a step was begun and its outcome is unknown; it waits to be settled
    "store_mismatch": 5,  # the caller's variable names another store or cache than the home uses
    "store_newer": 1,  # the database was made by a newer version
    "store_unreachable": 1,  # no server, no such database, or it went away and did not come back in time
    "store_full": 1,  # the disk has no room; nothing acknowledged is lost
    "store_readonly": 1,  # the file or its folder may not be written
    "store_damaged": 1,  # the file is not a database, or not a whole one
    "damaged": 1,  # a checkpoint's bytes are not what was saved
    "store_denied": 4,  # the server refused the user or the password
    "timeout": 124,
    "not_executable": 126,
    "no_program": 127,
    "interrupted": 130,
}


class HoldfastError(Exception):
    """What is wrong (`message`), what to do (`hint`), and a `code` that programs may rely on."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    @property
    def exit_status(self) -> int:
        return EXIT_STATUS.get(self.code, 1)

    def as_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def line(self) -> str:
        """The one line a person reads."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


def from_dict(data: dict[str, Any]) -> HoldfastError:
    """The error as it was raised at the other end; the two that programs catch by class keep their class."""
    code, message, hint = data.get("code", "failed"), data.get("message", "failed"), data.get("hint", "")
    if code in ("fenced", "in_doubt"):
        from .work.effects import Fenced, StepInDoubt

        return Fenced(message, hint) if code == "fenced" else StepInDoubt(message, hint, data.get("report"))
    return HoldfastError(code, message, hint)


def not_found(what: str, hint: str = "") -> HoldfastError:
    return HoldfastError("not_found", what, hint)


def invalid(what: str, hint: str = "") -> HoldfastError:
    return HoldfastError("invalid", what, hint)


def from_disk_error(e: BaseException) -> HoldfastError | None:
    """What the operating system says of a disk that is full or read-only, in our words; None for anything else."""
    if isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EDQUOT):
        return HoldfastError("store_full", "the disk is full", "free some space; what was acknowledged is safe")
    if isinstance(e, OSError) and e.errno == errno.EROFS:
        return HoldfastError("store_readonly", "the disk is read-only", "mount it writable; sessions go on")
    return None
