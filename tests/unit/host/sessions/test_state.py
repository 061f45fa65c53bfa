"""A session's life is one table: complete, and its states, lines and effects agree on every walk through it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.sessions import state as life
from holdfast.host.sessions.state import (
    HAS_LINE,
    LIVE,
    SETTLING,
    SILENT,
    TABLE,
    UNREACHABLE,
    Effect,
    Event,
    State,
    step,
)

PAIRS = list(itertools.product(State, Event))


def test_no_pair_is_missing() -> None:
    assert {(state, event) for state, row in TABLE.items() for event in row} == set(PAIRS)


def test_every_state_can_be_reached_and_left() -> None:
    reached = {State.NEW}
    for _ in State:
        reached |= {s.next for state in reached for s in TABLE[state].values()}
    assert reached == set(State)
    stuck = {state for state in State if all(s.next is state for s in TABLE[state].values())}
    assert stuck == {State.REMOVED}


def test_every_event_and_effect_is_used() -> None:
    means = {event for row in TABLE.values() for event, s in row.items() if s.effects or s.next is not State.REMOVED}
    assert means == set(Event)
    assert {effect for row in TABLE.values() for s in row.values() for effect in s.effects} == set(Effect)


def test_a_pair_that_is_a_bug_changes_nothing() -> None:
    for state, event in PAIRS:
        found = step(state, event)
        if found.bug:
            assert (found.next, found.effects) == (state, ())


def test_a_line_is_listened_to_when_it_comes_and_only_then() -> None:
    for state, event in PAIRS:
        found = step(state, event)
        comes = state not in HAS_LINE and found.next in HAS_LINE
        assert comes == (Effect.LISTEN in found.effects)
        assert not comes or event is Event.WELCOMED


def test_an_end_is_announced_once_for_what_had_begun() -> None:
    for state, event in PAIRS:
        found = step(state, event)
        ends = state in LIVE and found.next not in LIVE
        assert (Effect.BURY in found.effects) == (ends and state is not State.STARTING)
        assert not ends or Effect.BURY in found.effects or Effect.LOAD_ENDING in found.effects


def test_who_waits_is_woken_by_every_change_that_callers_can_see() -> None:
    for state, event in PAIRS:
        found = step(state, event)
        seen = lambda s: (life.public(s, False), s in SETTLING, s in SILENT)  # noqa: E731
        asked = (
            event in (Event.START_ASKED, Event.REMOVE_ASKED) or state is State.NEW
        )  # by the caller itself, or before
        hidden = found.next is State.START_LATE and state is State.STARTING  # `start` wakes when it has answered
        hidden = hidden or found.next is State.START_ORPHANED  # back to waiting
        if seen(state) != seen(found.next) and not asked and not hidden and found.next is not State.BEGUN:
            assert {Effect.WAKE, Effect.BURY} & set(found.effects)


@pytest.mark.parametrize("state", sorted(LIVE, key=str))
def test_a_live_session_is_neither_started_again_nor_removed(state: State) -> None:
    assert step(state, Event.START_ASKED).bug
    assert step(state, Event.REMOVE_ASKED).bug


@pytest.mark.parametrize("state", sorted(LIVE, key=str))
def test_every_live_session_can_end_with_and_without_a_record(state: State) -> None:
    assert step(state, Event.FINAL_RECORD).next is State.ENDED
    assert step(state, Event.KEEPER_GONE).next is State.LOST


@pytest.mark.parametrize("state", sorted(set(State) - {State.NEW}, key=str))
def test_a_stop_is_possible_in_every_state(state: State) -> None:
    found = step(state, Event.STOP_ASKED)
    assert (found.next, found.bug) == (state, False)


@pytest.mark.parametrize("state", [State.START_ORPHANED, State.START_LATE, State.DISCONNECTED])
def test_a_stop_that_could_not_be_sent_is_sent_with_the_first_answer(state: State) -> None:
    assert Effect.STOP_IF_UNWANTED in step(state, Event.WELCOMED).effects


def test_states_are_told_apart_by_what_can_be_done_with_them() -> None:
    assert not HAS_LINE & UNREACHABLE
    assert LIVE >= HAS_LINE | UNREACHABLE | SETTLING
    assert HAS_LINE | UNREACHABLE | {State.STARTING, State.START_ORPHANED} == LIVE
    assert UNREACHABLE | {State.UNANSWERED} == SILENT


def test_what_users_see() -> None:
    assert {s: life.public(s, False) for s in State if s not in LIVE} == {
        State.NEW: "lost",
        State.ENDED: "exited",
        State.LOST: "lost",
        State.REMOVED: "removed",
    }
    assert life.public(State.ENDED, True) == "reaped"
    assert {life.public(s, True) for s in LIVE} == {"live"}


@given(st.lists(st.sampled_from(Event), max_size=60))
def test_on_any_walk_a_session_that_ended_is_live_again_only_by_a_start(events: list[Event]) -> None:
    at = State.NEW
    for event in events:
        found = step(at, event)
        if at in (State.ENDED, State.LOST) and found.next in LIVE:
            assert event is Event.START_ASKED
        if at is State.REMOVED:
            assert found.next is State.REMOVED
        at = found.next
