"""What becomes of a run, from what its job did."""

from __future__ import annotations

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work.effects import Fenced, StepInDoubt, WorkerStopping
from holdfast.worker.jobs.run_end import Ending, ending


def test_a_job_that_returns_has_done_its_run_unless_a_steps_end_is_unknown() -> None:
    assert ending({"rows": 3}, None, []) == Ending("done", {"rows": 3})
    assert ending(None, None, ["pay", "ship"])[:2] == ("parked", "pay")


def test_a_job_that_raises_has_failed_its_run_with_the_error_as_outcome() -> None:
    try:
        raise ValueError("no such table\nat all")
    except ValueError as e:
        how, value, message = ending(None, e, [])
    assert (how, message) == ("failed", "ValueError: no such table")
    assert value["error"] == message
    assert "raise ValueError" in value["traceback"]


def test_a_step_in_doubt_parks_the_run_on_that_very_step() -> None:
    doubt = StepInDoubt("step 'ship' is in doubt", "look", {"key": "ship"})
    assert ending(None, doubt, ["pay", "ship"])[:2] == ("parked", "ship")
    assert ending(None, doubt, ["pay"])[:2] == ("parked", "pay")  # settled meanwhile
    assert ending(None, ValueError("x"), ["pay"])[:2] == ("parked", "pay")  # a body that raised


def test_a_worker_that_leaves_decides_nothing_about_the_run() -> None:
    assert ending(None, WorkerStopping(), ["open"]) == Ending("left")


@pytest.mark.parametrize("code", ["host_gone", "store_unreachable", "store_full", "store_denied"])
def test_a_store_that_fails_is_not_the_jobs_failure(code: str) -> None:
    with pytest.raises(HoldfastError):
        ending(None, HoldfastError(code, "x"), ["open"])


def test_a_fenced_worker_writes_no_ending() -> None:
    with pytest.raises(Fenced):
        ending(None, Fenced("taken over"), [])
