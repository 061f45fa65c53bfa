"""How a run ends at a worker: decided here, from what its job did and which of its steps nobody knows the end of."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ...model.errors import HoldfastError
from ...model.work.effects import StepInDoubt, WorkerStopping

_TRACE_MAX = 8000  # characters of a traceback kept with the run: the end of it, where the error is
# Not the job's doing: the run is not over, and goes on when the store or the host is back.
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
    """`how` is done, failed, parked or left; `value` the outcome, or the key of the step that is waited for."""

    how: str
    value: Any = None
    message: str | None = None


def ending(outcome: Any, error: BaseException | None, unsettled: list[str]) -> Ending:
    """What becomes of the run. An error that ends the worker itself is raised."""
    if isinstance(error, WorkerStopping):
        return Ending("left")
    if isinstance(error, HoldfastError) and error.code in _NOT_ITS_FAULT:
        raise error
    if unsettled:  # also when the job carried on: a run is not over while a step's end is unknown
        wanted = error.report.get("key") if isinstance(error, StepInDoubt) else None
        key = wanted if wanted in unsettled else unsettled[0]
        said = one_line(error) if error is not None else "the job returned all the same"
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
