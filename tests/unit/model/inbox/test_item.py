"""Inbox items: what can happen to them, and what a second answer is told."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.inbox import item as asks

EVENTS = ("answer", "approve", "deny", "expire", "vanish")


def item(kind: str, state: str = "open", **more: Any) -> dict[str, Any]:
    return {"id": "ask_1", "kind": kind, "state": state, "options": [], "answered_by": None, **more}


@pytest.mark.parametrize(
    ("kind", "event", "state"),
    [
        ("input", "answer", "answered"),
        ("secret", "answer", "answered"),
        ("question", "answer", "answered"),
        ("question", "deny", "denied"),
        ("approval", "approve", "answered"),
        ("approval", "deny", "denied"),
        ("approval", "expire", "expired"),
        ("control_request", "approve", "answered"),
        ("control_request", "deny", "denied"),
        ("input", "vanish", "gone"),
        ("approval", "vanish", "gone"),
    ],
)
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
    assert "ada (human) already answered" in asks.over(item("question", "answered", answered_by=by)).message
    assert "ada (human) already denied" in asks.over(item("approval", "denied", answered_by=by)).message


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
    [
        ("", []),
        ("  ", []),
        ("x" * 4001, []),
        (7, []),
        ("ok", [""]),
        ("ok", "main"),
        ("ok", ["a"] * 0 + [str(n) for n in range(21)]),
    ],
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


# -- menus and dialogs


@pytest.mark.parametrize("event", ["answer", "approve", "deny"])
def test_a_menu_takes_no_answer(event: str) -> None:
    with pytest.raises(HoldfastError) as e:
        asks.after(item("menu", session_name="web"), event)
    assert e.value.code == "usage"
    assert "attach, or send keys" in e.value.hint
    assert "hold attach web" in e.value.hint
    assert asks.after(item("menu", session_name="web"), "vanish") == "gone"


def test_a_late_answer_is_told_why_it_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    decided = asks.over(item("approval", "gone", reason=asks.DECIDED, answered_at=14 * 3600 + 121.0))
    assert "already decided in the terminal at 14:02" in decided.message
    assert "the agent has ended" in asks.over(item("approval", "gone", reason=asks.ASKER_ENDED)).message
    assert {decided.code, asks.over(item("approval", "gone")).code} == {"conflict"}


def sample(front: int = 7, **says: Any) -> dict[str, Any]:
    said = {"group": front, "state": "blocked", "end": 100, **says} if says else None
    return {"generation": 1, "facts": {"tty": {"foreground_pgid": front}}, "says": said}


def test_a_menu_is_the_same_while_its_job_shows_it() -> None:
    shown = item("menu", generation=1, front=7, blocked_at=None)
    assert asks.same_menu(shown, sample())
    assert not asks.same_menu(shown, sample(front=8))
    assert not asks.same_menu(shown, {**sample(), "generation": 2})
    blocked = {**shown, "blocked_at": 100}
    assert asks.same_menu(blocked, sample(end=100))
    assert not asks.same_menu(blocked, sample(end=200)), "another dialog of the same job"
    assert not asks.same_menu(blocked, sample(state="working"))
    assert not asks.same_menu(blocked, sample(group=9)), "another job said it"


def dialog(id: str, agent: str | None = None, call: str | None = "a", conversation: str = "c", at: float = 5.0) -> Any:
    named = {"conversation": conversation, "agent": agent, "call": call}
    return item("approval", id=id, dialog=named, created_at=at)


@pytest.mark.parametrize(
    ("over", "ended"),
    [
        ({}, ["1", "2", "3", "4"]),
        ({"agent": None}, ["1", "2", "4"]),
        ({"agent": "sub"}, ["3"]),
        ({"agent": None, "call": "a", "began": 9.0}, ["1"]),
        ({"agent": None, "call": "z", "began": 9.0}, ["1", "2"]),
        ({"agent": None, "call": "z", "began": 4.0}, []),
    ],
)
def test_what_a_conversation_leaves_behind(over: dict[str, Any], ended: list[str]) -> None:
    open_items = [
        dialog("1"),
        dialog("2", call="b"),
        dialog("3", agent="sub"),
        dialog("4", call=None, at=10.0),
        dialog("5", conversation="other"),
        item("approval", id="6"),
        item("question", id="7", dialog=None),
    ]
    assert [i["id"] for i in asks.decided(open_items, {"conversation": "c", **over})] == ended


@pytest.mark.parametrize(
    "given",
    [
        "x",
        {},
        {"conversation": ""},
        {"conversation": 7},
        {"conversation": "c", "agent": []},
        {"conversation": "x" * 300},
        {"conversation": "c", "call": "y" * 300},
    ],
)
def test_a_dialog_is_named_in_a_few_words(given: object) -> None:
    with pytest.raises(HoldfastError) as e:
        asks.check_dialog(given)
    assert e.value.code == "invalid"
    assert asks.check_dialog(None) is None
