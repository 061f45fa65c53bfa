"""What a worker can do: functions by name, each given a run. `hold worker MODULE:JOBS` runs them."""

from __future__ import annotations

from ..model.errors import HoldfastError, invalid
from ..model.limits import JOB_CRASHES_MAX
from ..model.work.effects import check_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    Job = TypeVar("Job", bound=Callable[..., Any])


class Jobs:
    """A module's jobs.

        jobs = holdfast.Jobs()

        @jobs.job
        def migrate(run):
            for batch in run.items:
                run.step(f"move:{batch}", move, batch, effect="verifiable", verify=is_moved)

    A job's parameters are `run.params`; what it returns is the run's outcome. It may be run again from its beginning by
    another worker: what must not happen twice is a step. An `async def` gets the asyncio face of the run.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, Callable[..., Any]] = {}
        self.max_crashes: dict[str, int] = {}

    def job(self, fn: Job | None = None, *, name: str | None = None, max_crashes: int = JOB_CRASHES_MAX) -> Any:
        """Register a function, under its own name unless told otherwise. A decorator, with or without arguments.

        A run at which `max_crashes` workers died is parked: no worker takes it before somebody had it tried again.
        """
        if fn is None:
            return lambda given: self.job(given, name=name, max_crashes=max_crashes)
        if type(max_crashes) is not int or max_crashes < 1:
            raise invalid(f"max_crashes is a number from 1 on, not {max_crashes!r:.40}", "@jobs.job(max_crashes=3)")
        if not callable(fn):
            raise invalid("a job is a function that takes a run", "@jobs.job, or @jobs.job(name=…)")
        known = check_word("a job", name or getattr(fn, "__name__", None))
        if self._jobs.setdefault(known, fn) is not fn:
            raise HoldfastError("conflict", f"there are two jobs {known!r}", "give one of them another name")
        self.max_crashes[known] = max_crashes
        return fn

    @property
    def names(self) -> list[str]:
        return sorted(self._jobs)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._jobs[name]

    def __len__(self) -> int:
        return len(self._jobs)
