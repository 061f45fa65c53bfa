"""The steps that a process is doing: claimed once, waited for by others, forgotten by a forked child."""

from __future__ import annotations

import os
from contextvars import copy_context
from typing import Any

import pytest

from holdfast.client.steps_under_way import CalledOff, Unit, claim, others
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import new


def _about(key: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "effect": "unsafe", "args": [1], "action": "pay", **more}


def test_a_step_is_claimed_once_until_it_is_left() -> None:
    run = new("run_")
    first, mine = claim(run, _about("a"))
    assert mine
    with pytest.raises(HoldfastError, match="called by its own body"):
        claim(run, _about("a"))
    there, mine = _elsewhere(lambda: claim(run, _about("a")))
    assert (there is first, mine) == (True, False)
    assert _elsewhere(lambda: claim(new("run_"), _about("a")))[1]  # another run's step
    waiting = there.ended
    assert not waiting.done()
    first.leave()
    assert waiting.done()
    again, mine = claim(run, _about("a"))
    assert (mine, again is first, first.ended.done()) == (True, False, True)
    again.leave()


def test_what_is_under_way_in_a_run_leaves_out_the_steps_whose_body_asks() -> None:
    run = new("run_")
    outer, _ = claim(run, _about("outer"))
    beside, _ = _elsewhere(lambda: claim(run, _about("beside")))
    assert others(run) == [beside]
    assert _elsewhere(lambda: others(run)) == [outer, beside]
    beside.leave()
    outer.leave()
    assert _elsewhere(lambda: others(run)) == []


def test_only_the_same_arguments_and_effect_are_the_same_step() -> None:
    step, _ = claim(new("run_"), _about("a"))
    assert step.same(_about("a", action="another name for it"))
    assert not step.same(_about("a", args=[2]))
    assert not step.same(_about("a", effect="idempotent"))
    step.leave()


def test_a_unit_without_its_caller_goes_on_only_for_others() -> None:
    unit = Unit()
    unit.at, _ = claim(new("run_"), _about("a"))
    unit.go_on()
    unit.left, unit.at.waiting = True, 1
    unit.go_on()
    unit.at.waiting = 0
    with pytest.raises(CalledOff):
        unit.go_on()
    unit.at.leave()


def test_a_forked_child_does_none_of_its_parents_steps() -> None:
    run = new("run_")
    step, _ = claim(run, _about("a"))
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if claim(run, _about("a"))[1] else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    step.leave()


def _elsewhere(call: Any) -> Any:
    """As code that no body has called."""
    from holdfast.client import steps_under_way

    def outside() -> Any:
        steps_under_way._inside.set(())
        return call()

    return copy_context().run(outside)
