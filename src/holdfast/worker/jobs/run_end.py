"""Decides how a run ends at a worker: from its job's outcome and its steps in doubt."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ...model.errors import HoldfastError
from ...model.work.effects import StepInDoubt, WorkerStopping

_TRACE_MAX = 8000  # characters of a traceback stored with the run: its end, where the error is
# Not the job's fault: the run is not over, and continues when the store or the host is back.
_NOT_ITS_FAULT = frozenset(
    {
        "fenced",
        "host_gone",
        "store_unreachable",
        "store_full",
        "store_readonly",
        "store_denied",
        "store_damaged",
        "store_newer",
    }
)


class Ending(NamedTuple):
    """`how` is done, failed, parked or left; `value` is the outcome, or the key of the step in doubt."""

    how: str
    value: Any = None
    message: str | None = None


def ending(outcome: Any, error: BaseException | None, unsettled: list[str]) -> Ending:
    """The run's ending. An error that ends the worker itself is raised."""
    if isinstance(error, WorkerStopping):
        return Ending("left")
    if isinstance(error, HoldfastError) and error.code in _NOT_ITS_FAULT:
        raise error
    if unsettled:  # also if the job continued: a run is not over while a step's outcome is unknown
        wanted = error.report.get("key") if isinstance(error, StepInDoubt) else None
        key = wanted if wanted in unsettled else unsettled[0]
        said = one_line(error) if error is not None else "the job returned although a step is in doubt"
        return Ending("parked", key, said)
    if error is None:
        return Ending("done", outcome)
    trace = "".join(traceback.format_exception(error))[-_TRACE_MAX:]
    return Ending("failed", {"error": one_line(error), "traceback": trace}, one_line(error))


def one_line(error: BaseException) -> str:
    if isinstance(error, HoldfastError):
        return error.line()
    first = (str(error).splitlines() or [""])[0][:500]
    return f"{type(error).__name__}: {first}"
