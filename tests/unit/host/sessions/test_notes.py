"""What the host keeps beside a session."""

from __future__ import annotations

from holdfast.host.sessions.notes import SessionNotes, from_json, to_json


def test_what_is_kept_is_read_again() -> None:
    kept = SessionNotes(True, True, 1.5, 2.5, 3, {"generation": 1, "operators": ["op_a"]}, "box:0")
    assert from_json(to_json(kept)) == kept


def test_nothing_is_written_where_nothing_is_to_say() -> None:
    assert to_json(SessionNotes()) == {}
    assert to_json(SessionNotes(stopped=True)) == {"stopped": True}


def test_what_is_unknown_or_malformed_is_left_out() -> None:
    kept = {"execs_checked": 4, "stopped": "yes", "restart_at": "soon", "failures": 2, "reap_at": None, "hands": []}
    assert from_json(kept) == SessionNotes(failures=2)
