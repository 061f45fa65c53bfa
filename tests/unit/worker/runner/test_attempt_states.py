"""An attempt's course: every row of the table, the judgement, and the choice of a backend."""

from __future__ import annotations

import pytest

from holdfast.model.ids import check_name
from holdfast.worker.runner.attempt_states import (
    ACTIONS,
    ALWAYS,
    COURSE,
    Facts,
    choose,
    counted,
    next_action,
    session_name,
)

OK = Facts(ok=True, checks=1)

# (after which action, with what, knowing what) -> next
TABLE = [
    ("begin", "taken", Facts(), "prepare"),
    ("prepare", "prepared", Facts(), "start"),
    ("prepare", "missing", Facts(), "reject"),
    ("start", "started", Facts(), "wait"),
    ("start", "refused", Facts(), "reject"),
    ("start", "elsewhere", Facts(), "block"),
    ("wait", "exited", Facts(), "clear"),
    ("wait", "time_up", Facts(), "stop"),
    ("stop", "stopped", Facts(), "compare"),
    ("clear", "cleared", OK, "compare"),
    ("compare", "compared", OK, "verify"),
    ("compare", "compared", Facts(ok=True, checks=0), "accept"),  # exit code 0, and nothing to verify
    ("compare", "compared", Facts(ok=False, changed=0, checks=1), "reject"),  # gave up, nothing done
    ("compare", "compared", Facts(ok=False, changed=2, checks=1), "verify"),  # cut off, with changes: kept and verified
    ("compare", "compared", Facts(ok=False, changed=2, checks=0), "reject"),  # nothing says that it is done
    ("verify", "verified", Facts(ok=True, checks=1, passed=True), "accept"),
    ("verify", "verified", Facts(ok=True, checks=1, passed=False), "reject"),
    ("verify", "verified", Facts(ok=False, changed=1, checks=1, passed=True), "accept"),
    ("accept", "accepted", OK, "end"),
    ("accept", "outdated", OK, "verify"),
    ("accept", "in_doubt", OK, "block"),
    ("reject", "rejected", OK, "end"),
    ("block", "blocked", OK, "end"),
    ("leave", "left", OK, "end"),
    ("abandon", "abandoned", OK, "end"),
    ("drop", "dropped", OK, "end"),
]


@pytest.mark.parametrize(("action", "event", "facts", "wanted"), TABLE)
def test_what_comes_next(action: str, event: str, facts: Facts, wanted: str) -> None:
    assert next_action(action, event, facts) == wanted


def test_every_row_of_the_table_is_tested_and_leads_to_an_action_there_is() -> None:
    assert {(a, e) for a, e, _, _ in TABLE} == set(COURSE)
    assert set(COURSE.values()) <= {*ACTIONS, "judge"}


@pytest.mark.parametrize(("event", "wanted"), ALWAYS.items())
def test_a_runner_that_leaves_or_is_fenced_ends_whatever_it_was_at(event: str, wanted: str) -> None:
    for action in ACTIONS:
        assert next_action(action, event, OK) == wanted


CHOICES = [
    (["claude", "codex"], [], 1, "claude"),
    (["claude", "codex"], [("claude", "test_failure")], 1, "codex"),
    (["claude", "codex"], [("claude", "test_failure")], 2, "claude"),
    (["claude", "codex"], [("claude", "x"), ("codex", "x")], 1, "claude"),
    (["claude", "codex"], [("claude", "missing_tool"), ("codex", "x")], 1, "codex"),  # one that is not there stays out
    (["claude"], [("claude", "missing_tool")], 1, "claude"),  # somebody may have installed it
    (["a", "b", "c"], [("a", None), ("b", None)], 1, "c"),
    ([], [], 1, None),
]


@pytest.mark.parametrize(("order", "tried", "escalate_after", "wanted"), CHOICES)
def test_the_next_backend(order: list[str], tried: list, escalate_after: int, wanted: str | None) -> None:
    assert choose(order, tried, escalate_after) == wanted


def test_attempts_before_a_fresh_start_no_longer_count() -> None:
    tried = [{"n": n, "begun_at": f"2026-01-0{n}T00:00:00.000Z"} for n in (1, 2, 3, 4)]
    events = [
        {"event": "unblock", "at": "2026-01-02T12:00:00.000Z"},
        {"event": "fail", "at": "2026-01-03T12:00:00.000Z"},
    ]
    assert [a["n"] for a in counted(tried, events, 4)] == [3]
    assert [a["n"] for a in counted(tried, [], 4)] == [1, 2, 3]


@pytest.mark.parametrize(("project", "id"), [("demo", "1.5"), ("p" * 64, "i" * 64), ("a", "1"), ("x-", "y_")])
def test_a_sessions_name_is_one_and_tells_the_attempt(project: str, id: str) -> None:
    name = session_name(project, id, 12)
    assert check_name(name) == name
    assert name.endswith("-12")
