"""Inbox items: what can happen to them, and what a second answer is told."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import asks
from holdfast.model.errors import HoldfastError

EVENTS = ("answer", "approve", "deny", "expire", "vanish")


def item(kind: str, state: str = "open", **more: Any) -> dict[str, Any]:
    return {"id": "ask_1", "kind": kind, "state": state, "options": [], "answered_by": None, **more}


@pytest.mark.parametrize(
    ("kind", "event", "state"),
    [
        ("input", "answer", "answered"), ("secret", "answer", "answered"), ("question", "answer", "answered"),
        ("question", "deny", "denied"), ("approval", "approve", "answered"), ("approval", "deny", "denied"),
        ("approval", "expire", "expired"), ("control_request", "approve", "answered"),
        ("control_request", "deny", "denied"), ("input", "vanish", "gone"), ("approval", "vanish", "gone"),
    ],
)  # fmt: skip
def test_an_open_item_ends_as_the_table_says(kind: str, event: str, state: str) -> None:
    assert asks.after(item(kind), event) == state


@pytest.mark.parametrize(
    ("kind", "event"),
    [("input", "approve"), ("secret", "deny"), ("question", "approve"), ("approval", "answer"), ("input", "expire")],
)
def test_an_answer_of_the_wrong_kind_is_refused_with_the_right_one(kind: str, event: str) -> None:
    with pytest.raises(HoldfastError) as e:
        asks.after(item(kind), event)
    assert e.value.code == "usage"
    assert "hold answer ask_1" in e.value.hint


@pytest.mark.parametrize("state", ["answered", "denied", "expired", "gone"])
@pytest.mark.parametrize("kind", asks.KINDS)
@pytest.mark.parametrize("event", EVENTS)
def test_what_is_over_stays_over(kind: str, state: str, event: str) -> None:
    with pytest.raises(HoldfastError) as e:
        asks.after(item(kind, state), event)
    assert e.value.exit_status == 5


def test_a_second_answer_is_told_who_gave_the_first() -> None:
    by = {"operator": "op_1", "kind": "human", "name": "ada"}
    assert "ada (human) has answered" in asks.over(item("question", "answered", answered_by=by)).message
    assert "ada (human) has said no" in asks.over(item("approval", "denied", answered_by=by)).message


def test_an_answer_with_options_is_one_of_them_or_its_number() -> None:
    asked = item("question", options=["main", "develop"])
    assert asks.check_answer(asked, "main") == "main"
    assert asks.check_answer(asked, "2") == "develop"
    for wrong in ("3", "0", "Main", ""):
        with pytest.raises(HoldfastError):
            asks.check_answer(asked, wrong)
    assert asks.check_answer(item("question"), "3") == "3"


@pytest.mark.parametrize(
    ("text", "options"),
    [("", []), ("  ", []), ("x" * 4001, []), (7, []), ("ok", [""]), ("ok", "main"), ("ok", ["a"] * 0 + [str(n) for n in range(21)])],
)
def test_a_question_that_cannot_be_shown_is_refused(text: object, options: object) -> None:
    with pytest.raises(HoldfastError) as e:
        asks.check_question(text, options)
    assert e.value.code == "invalid"


def test_a_prompt_is_the_same_only_while_nothing_was_typed_or_printed() -> None:
    asked = item("input", generation=1, input_at=5.5, offset=100)
    sample = {"generation": 1, "input_at": 5.5, "output": {"end": 100}}
    assert asks.same_prompt(asked, sample)
    for other in ({"generation": 2}, {"input_at": 5.6}, {"output": {"end": 101}}):
        assert not asks.same_prompt(asked, {**sample, **other})
