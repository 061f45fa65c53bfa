"""The log folded into a state, and two states compared: pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.delta.encode import state_hash
from holdfast.model.work import run_state
from holdfast.model.work.effects import LOG_KINDS
from holdfast.model.work.run_state import SAID, blank, differences, fold, folded, owned, told
from tests.support.soak import examples

# On a shared machine slowness is no finding.
calm = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
BODIES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["text", "why", "to", "x"]), v, max_size=3),
    max_leaves=5,
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(LOG_KINDS), "body": BODIES, "step": st.none() | st.sampled_from("st")}
    ),
    max_size=12,
)


def numbered(entries: list[Any]) -> list[Any]:
    return [{**entry, "seq": n} for n, entry in enumerate(entries, 1)]


def entry(kind: str, body: Any, seq: int = 1, step: str | None = None) -> Any:
    return {"kind": kind, "body": body, "seq": seq, "step": step}


@calm
@given(ENTRIES, st.integers(0, 12))
def test_whatever_was_logged_can_be_folded_and_told_and_any_cut_gives_the_same_state(entries: Any, cut: int) -> None:
    entries = numbered(entries)
    at_once = folded(blank(), entries)
    in_two = folded(folded(blank(), entries[:cut]), entries[cut:])
    assert state_hash(at_once) == state_hash(in_two)
    one_by_one = blank()
    for one in entries:
        fold(one_by_one, one)
    assert state_hash(at_once) == state_hash(one_by_one)
    assert all(isinstance(told(e)["text"], str) for e in entries)


@calm
@given(st.dictionaries(st.sampled_from(["context", "messages", "open_paths", "scratch"]), BODIES), ENTRIES)
def test_folding_into_an_agents_fields_changes_nothing_of_the_agents_own(fields: Any, entries: Any) -> None:
    before = repr(fields)
    folded(blank() | owned(fields), numbered(entries))
    assert repr(fields) == before


def test_every_kind_of_entry_has_a_word() -> None:
    assert set(LOG_KINDS) <= set(SAID)


def test_decisions_questions_and_paths_not_taken_are_in_the_state() -> None:
    state = folded(
        blank(),
        [
            entry("decision", {"text": "use B", "why": "A is slow"}, 1),
            entry("learned", "the API is rate limited", 2),
            entry("rejected", {"text": "A", "why": "slow"}, 3),
            entry("question", "which region?", 4),
            entry("question", "which day?", 5),
            entry("answer", {"to": 5, "text": "Monday"}, 6),
            entry("answer", "eu", 7),
            entry("action", {"action": "copy b1", "why": "next"}, 8, "copy:b1"),
        ],
    )
    assert state["context"]["decisions"] == [{"seq": 1, "text": "use B", "why": "A is slow"}]
    assert state["context"]["learned"][0]["text"] == "the API is rate limited"
    assert state["open_paths"] == [{"seq": 3, "path": "A", "why": "slow"}]
    assert [q["answer"] for q in state["context"]["questions"]] == ["eu", "Monday"]
    assert state["resume_point"] == {"seq": 8, "step": "copy:b1", "last": "did", "text": "copy b1"}
    assert state["current_step"] == "copy:b1"


def test_what_an_agent_put_where_a_list_belongs_is_kept() -> None:
    state: Any = {"messages": "a text", "context": "a text", "open_paths": None}
    fold(state, entry("message", "m"))
    fold(state, entry("decision", "d"))
    fold(state, entry("rejected", "r"))
    assert state["messages"] == ["a text", "m"]
    assert state["context"]["value"] == "a text"
    assert len(state["open_paths"]) == 1


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, [{"key": "a", "change": "changed", "from": 1, "to": 1.0}]),
        ({"a": 1}, {"b": 1}, [{"key": "a", "change": "removed", "from": 1}, {"key": "b", "change": "added", "to": 1}]),
        (
            {"a": [1, 2, 3]},
            {"a": [1, 9]},
            [{"key": "a", "change": "changed", "at": 1, "removed": [2, 3], "added": [9]}],
        ),
    ],
)
def test_two_states_are_compared_key_by_key(old: Any, new: Any, changes: Any) -> None:
    assert differences(old, new) == changes


def test_the_blank_state_has_every_field_and_is_nobodys_in_particular() -> None:
    blank()["messages"].append(1)
    assert blank()["messages"] == []
    assert set(blank()) == set(run_state.FIELDS)
