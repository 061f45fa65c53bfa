"""The words of the work plane: effects, states, outcomes, and the two errors a durable worker must know."""

from __future__ import annotations

from ..errors import HoldfastError, invalid
from ..limits import KEY_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What a repetition of a step's body would do to the world.
EFFECTS = ("none", "idempotent", "verifiable", "unsafe")

# open: the intent is durable, the outcome is not. in_doubt: nobody knows; it is settled, or open again by rule.
STEP_STATES = ("open", "done", "failed", "in_doubt", "settled")
RUN_STATES = ("active", "done", "failed", "cancelled")
RUN_STATES_SHOWN = (*RUN_STATES, "parked")  # active, and no worker takes it before a person has done something
OUTCOMES = ("done", "not_done", "failed")  # what a settlement can say; failed: it ran, and did not succeed
DECISIONS = ("execute", "reuse", "in_doubt")

# What a log entry is. The first four are written by the work plane itself, the others by whoever works.
LOG_KINDS = (
    "run",
    "action",
    "observation",
    "settlement",
    "message",
    "reasoning",
    "decision",
    "learned",
    "rejected",
    "question",
    "answer",
    "note",
)


class Fenced(HoldfastError):
    """Somebody else is the writer now, or the lease ran out: nothing this worker writes is kept any more."""

    def __init__(self, message: str, hint: str = "stop; the run goes on elsewhere, or take it over again") -> None:
        super().__init__("fenced", message, hint)


class WorkerStopping(BaseException):
    """A worker was asked to stop: the run's next step is not begun, and another worker goes on from there."""


class StepInDoubt(HoldfastError):
    """A step was begun, its outcome is unknown, and no rule settles it. `report` says what is known."""

    def __init__(self, message: str, hint: str = "", report: dict[str, Any] | None = None) -> None:
        super().__init__("in_doubt", message, hint or "find out what happened, then: hold step settle RUN KEY")
        self.report: dict[str, Any] = report or {}

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "report": self.report}


def check_effect(effect: str) -> str:
    if effect not in EFFECTS:
        raise invalid(f"there is no effect {str(effect)[:40]!r}", "one of " + ", ".join(EFFECTS))
    return effect


def check_word(what: str, word: object, longest: int = KEY_MAX) -> str:
    """A key, a name or a worker as the store can keep it on every backend: text, bounded, no NUL."""
    if not isinstance(word, str) or not word:
        raise invalid(f"{what} must be text and not empty", f"got {type(word).__name__}")
    if len(word) > longest:
        raise invalid(f"{what} has at most {longest} characters, this one has {len(word)}", "use a shorter one")
    if "\0" in word:
        raise invalid(f"{what} cannot hold a NUL character", "leave it out")
    try:
        word.encode()
    except UnicodeEncodeError:
        raise invalid(f"{what} is not valid UTF-8", "pass text, and bytes as an artifact") from None
    return word
