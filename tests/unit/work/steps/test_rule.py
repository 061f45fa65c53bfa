"""The rules of steps, leases and items: pure functions, no store."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work.effects import EFFECTS, STEP_STATES, Fenced, StepInDoubt
from holdfast.store.base import Held, Step
from holdfast.wire import json_values
from holdfast.work.runs import lease, rows
from holdfast.work.steps import rule


def a_step(**changes: Any) -> Step:
    known: dict[str, Any] = dict.fromkeys(Step._fields)
    known |= {
        "run": "run_x",
        "key": "k",
        "state": "open",
        "effect": "unsafe",
        "args_hash": "h",
        "idem_key": "i",
        "epoch": 1,
        "tries": 1,
        "begin_request": "r1",
        "begun_at": 1,
    }
    return Step(**(known | changes))


def a_lease(**changes: Any) -> Held:
    known: dict[str, Any] = {
        "attempt": "att_x",
        "task": None,
        "n": 1,
        "worker": "w1",
        "instance": None,
        "epoch": 3,
        "lease_until": 100,
        "ended_at": None,
        "now": 99,
    }
    return Held(**(known | changes))


@pytest.mark.parametrize(
    ("state", "effect", "outcome"), [*itertools.product(STEP_STATES, EFFECTS, ("done", "not_done"))]
)
def test_beginning_again_executes_only_what_did_not_happen_or_may_happen_twice(
    state: str, effect: str, outcome: str
) -> None:
    step = a_step(state=state, effect=effect, outcome=outcome if state == "settled" else None)
    decision = rule.may_begin(step, args_hash="h", effect=effect, request="other").decision
    happened = state == "done" or (state == "settled" and outcome == "done")
    not_happened = state == "failed" or (state == "settled" and outcome == "not_done")
    if happened:
        assert decision == "reuse"
    elif not_happened or effect in ("none", "idempotent"):
        assert decision == "execute"
    else:
        assert decision == "in_doubt"


def test_only_the_same_request_finds_its_own_intent() -> None:
    step = a_step()
    assert rule.may_begin(step, args_hash="h", effect="unsafe", request="r1") == rule.Begin("execute", "nothing")
    assert rule.may_begin(step, args_hash="h", effect="unsafe", request="r2") == rule.Begin("in_doubt", "doubt")


def test_a_lease_is_over_at_the_very_moment_it_ends() -> None:
    lease.check(a_lease(now=99), 3)
    for held, epoch in ((a_lease(now=100), 3), (a_lease(), 2), (a_lease(), 4), (a_lease(ended_at=50), 3)):
        with pytest.raises(Fenced):
            lease.check(held, epoch)


@pytest.mark.parametrize(
    ("holder", "asking", "allowed"),
    [
        ("w1", "w2", False),
        ("w1", "w1", True),
        ("hand:a", "w2", True),
        ("hand:a", "hand:b", False),
        ("w1", "hand:a", False),
    ],
)
def test_a_live_lease_yields_to_its_own_worker_and_a_hand_to_a_worker(holder: str, asking: str, allowed: bool) -> None:
    held = a_lease(worker=holder)
    if allowed:
        lease.may_take(held, asking)
    else:
        with pytest.raises(HoldfastError):
            lease.may_take(held, asking)
    lease.may_take(a_lease(worker=holder, now=100), asking)


def test_the_end_of_a_step_belongs_to_its_epoch() -> None:
    assert rule.may_end(a_step(epoch=3), key="k", epoch=3, effect=None) == "update"
    assert rule.said_before(a_step(end_request="e", state="done"), "e") == {"key": "k", "state": "done"}
    assert rule.said_before(a_step(end_request="e", state="done"), "f") is None
    with pytest.raises(StepInDoubt) as doubt:
        rule.may_end(a_step(state="in_doubt", epoch=2), key="k", epoch=3, effect=None)
    assert doubt.value.report["key"] == "k"
    assert doubt.value.as_dict()["report"]["effect"] == "unsafe"


def test_items_are_found_by_the_tail_of_a_key() -> None:
    items = ["a", "b:c", "d", "e"]
    states = {
        "copy:a": "done",
        "check:a": "done",
        "x:b:c": "in_doubt",
        "d": "failed",
        "other:z": "done",
        "move:e": "pending",
    }
    assert rows.sort_items(items, states) == {
        "total": 4,
        "done": ["a"],
        "in_doubt": ["b:c"],
        "failed": ["d"],
        "pending": ["e"],
    }


def test_the_same_value_is_the_same_text() -> None:
    assert json_values.encode({"b": 1, "a": [1, (2, 3)]}, "x") == json_values.encode({"a": (1, [2, 3]), "b": 1}, "x")


@pytest.mark.parametrize("value", [object(), "\udcff", {1: {2, object()}}, "x" * (9 << 20), [b"x" * (9 << 20)]])
def test_what_cannot_be_kept_is_told_in_one_line(value: object) -> None:
    with pytest.raises(HoldfastError) as told:
        json_values.encode(value, "the message")
    assert told.value.code == "invalid"
    assert "the message" in told.value.message
    assert len(told.value.line()) < 500
