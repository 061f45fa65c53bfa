"""Every error a user can meet: one root, a stable code, one line of what happened and one of what to do."""

from __future__ import annotations

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

    def as_dict(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, "hint": self.hint}

    def line(self) -> str:
        """The one line a person reads."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


def from_dict(data: dict[str, str]) -> HoldfastError:
    return HoldfastError(data.get("code", "failed"), data.get("message", "failed"), data.get("hint", ""))


def not_found(what: str, hint: str = "") -> HoldfastError:
    return HoldfastError("not_found", what, hint)


def invalid(what: str, hint: str = "") -> HoldfastError:
    return HoldfastError("invalid", what, hint)
