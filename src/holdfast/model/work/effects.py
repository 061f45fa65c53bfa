"""The constants of work (effects, states, outcomes) and the errors that a durable worker handles."""

from __future__ import annotations

from ..errors import HoldfastError, invalid
from ..limits import KEY_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# What running a step's body twice would do.
EFFECTS = ("none", "idempotent", "verifiable", "unsafe")

# open: the intent is durable, the outcome is not. in_doubt: unknown; it is settled, or open again by rule.
STEP_STATES = ("open", "done", "failed", "in_doubt", "settled")
RUN_STATES = ("active", "done", "failed", "cancelled")
RUN_STATES_SHOWN = (*RUN_STATES, "parked")  # active, and no worker takes it before a person acts
OUTCOMES = ("done", "not_done", "failed")  # outcomes of a settlement; failed: it ran, and did not succeed
DECISIONS = ("execute", "reuse", "in_doubt")

# Kinds of log entries. Holdfast writes the first four, workers the others.
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
    """Another worker has the run now, or the lease expired: further writes of this worker are refused."""

    def __init__(self, message: str, hint: str = "stop; another worker continues the run, or claim it again") -> None:
        super().__init__("fenced", message, hint)


class WorkerStopping(BaseException):
    """A worker was asked to stop: the run's next step is not begun, and another worker continues there."""


class StepInDoubt(HoldfastError):
    """A step was begun, its outcome is unknown, and no rule settles it. `report` holds the known facts."""

    def __init__(self, message: str, hint: str = "", report: dict[str, Any] | None = None) -> None:
        super().__init__("in_doubt", message, hint or "find out what happened, then: hold step settle RUN KEY")
        self.report: dict[str, Any] = report or {}

    def as_dict(self) -> dict[str, Any]:
        return {**super().as_dict(), "report": self.report}


def check_effect(effect: str) -> str:
    if effect not in EFFECTS:
        raise invalid(f"no such effect: {str(effect)[:40]!r}", "one of " + ", ".join(EFFECTS))
    return effect


def check_word(what: str, word: object, longest: int = KEY_MAX) -> str:
    """Check a key, a name or a worker's name for every backend: text, bounded, no NUL."""
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
