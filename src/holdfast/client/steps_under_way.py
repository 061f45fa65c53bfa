"""The steps that this process is doing now. None of them is begun, verified or settled beside itself.

A body on a thread cannot be stopped: when its caller stops waiting, the body goes on. So a step is kept here from
before its intent until its outcome is on disk, by run and key, for all `Run` objects, threads and event loops of the
process. A second call waits for the first.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future
from contextvars import ContextVar

from ..model.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

_lock = threading.Lock()
_steps: dict[tuple[str, str], UnderWay] = {}
_inside: ContextVar[tuple[UnderWay, ...]] = ContextVar("holdfast_inside", default=())  # whose bodies call us


class CalledOff(BaseException):
    """The caller stopped waiting, and everything that was begun is finished."""


class UnderWay:
    """One step from before its intent until after its outcome."""

    __slots__ = ("_ended", "about", "raised", "run", "waiting")

    def __init__(self, run: str, about: Json) -> None:
        self.run, self.about = run, about
        self.raised: Exception | None = None  # by its body; every caller that joined gets it
        self.waiting = 0  # calls that joined it
        self._ended: Future[None] | None = None

    @property
    def ended(self) -> Future[None]:
        """Done when the step is no longer under way."""
        with _lock:
            if self._ended is None:
                self._ended = Future()
                if _steps.get((self.run, self.about["key"])) is not self:
                    self._ended.set_result(None)
            return self._ended

    def same(self, about: Json) -> bool:
        return bool(self.about["args"] == about["args"] and self.about["effect"] == about["effect"])

    def leave(self) -> None:
        with _lock:
            del _steps[self.run, self.about["key"]]
            ended = self._ended
        _inside.set(tuple(step for step in _inside.get() if step is not self))
        if ended is not None:
            ended.set_result(None)


class Unit:
    """One call of `step` or `each`.

    `firm` while it does what must not be cut short: a function on a thread, the writing of an outcome. `left` when its
    caller stopped waiting: what is firm is finished then, and nothing else is begun.
    """

    __slots__ = ("at", "firm", "left")

    def __init__(self) -> None:
        self.at: UnderWay | None = None
        self.firm = self.left = False

    @property
    def wanted(self) -> bool:
        """Whether a caller waits for the current step."""
        return not self.left or (self.at is not None and self.at.waiting > 0)

    def go_on(self) -> None:
        self.firm = False
        if not self.wanted:
            raise CalledOff


def claim(run: str, about: Json) -> tuple[UnderWay, bool]:
    """The step of this key, and whether it is the caller's to do; else it is under way, and to be waited for."""
    with _lock:
        there = _steps.get((run, about["key"]))
        if there is None:
            made = _steps[run, about["key"]] = UnderWay(run, about)
    if there is None:
        _inside.set((*_inside.get(), made))
        return made, True
    if there in _inside.get():
        raise HoldfastError(
            "conflict", f"step {about['key']!r} is called by its own body", "give the inner step another key"
        )
    return there, False


def others(run: str) -> list[UnderWay]:
    """What is under way in a run; without the steps whose bodies ask."""
    mine = _inside.get()
    with _lock:
        return [step for step in _steps.values() if step.run == run and step not in mine]


def _forget() -> None:
    """A forked child does none of what its parent does."""
    global _lock
    _lock = threading.Lock()
    _steps.clear()


os.register_at_fork(after_in_child=_forget)
