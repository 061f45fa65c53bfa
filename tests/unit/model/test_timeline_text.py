"""The journal as sentences."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model import timeline_text

ADA = {"operator": "op_ada", "operator_kind": "human", "name": "ada", "session": "ses_web", "session_name": "web"}
BOT = {"operator": "op_bot", "operator_kind": "agent", "name": "bot", "session": "ses_web", "session_name": "web"}
AT = "2026-01-31T12:00:05.000Z"


def told(entry: dict[str, Any], names: bool = True) -> str:
    (line,) = timeline_text.tell([{"at": AT, **entry}], names=names)
    assert (line.day, line.clock) == ("2026-01-31", "12:00:05")
    return str(line.text)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({**ADA, "kind": "start", "command": ["npm", "run"]}, "ada started web with “npm run”"),
        ({**BOT, "kind": "exec", "text": "make", "why": "build"}, "bot (agent) ran “make” in web: “build”"),
        (
            {**ADA, "kind": "preempt", "from": {"name": "bot", "kind": "agent"}, "epoch": 3, "flushed": 12},
            "ada took the controls from bot (agent) (epoch 3, 12 unread bytes dropped) in web",
        ),
        (
            {**ADA, "kind": "hand", "to": {"name": "bot", "kind": "agent"}, "epoch": 4, "note": "go"},
            "ada handed the controls to bot (agent) (epoch 4), saying “go” in web",
        ),
        ({**BOT, "kind": "refuse", "op": "stop", "reason": "no"}, "bot (agent) was refused stop in web: no"),
        (
            {"kind": "refuse", "op": "prove", "reason": "no key", "repeated": 4},
            "refused prove of an unknown caller (4 times more): no key",
        ),
        ({**ADA, "kind": "send", "secret": True}, "ada sent a secret in web"),
        ({**ADA, "kind": "stop"}, "ada stopped web"),
        (
            {"kind": "restart", "session": "ses_web", "session_name": "web", "command": ["x"]},
            "the host started web again with “x”",
        ),
        (
            {"kind": "ended", "session": "ses_web", "session_name": "web", "exit": {"code": 3, "known": True}},
            "the program ended: code 3 in web",
        ),
        (
            {"kind": "ended", "session": "ses_web", "session_name": "web", "exit": {"known": False}},
            "the program ended: exit status unknown in web",
        ),
    ],
)
def test_each_kind_is_a_sentence(entry: dict[str, Any], sentence: str) -> None:
    assert told(entry) == sentence


def test_where_one_session_is_spoken_of_it_is_not_named_again() -> None:
    assert told({**ADA, "kind": "stop"}, names=False) == "ada stopped it"


def test_a_command_is_told_once() -> None:
    entries = [
        {**ADA, "at": AT, "kind": "input", "what": "exec", "exec_id": "exe_1"},
        {**ADA, "at": AT, "kind": "exec", "exec_id": "exe_1", "text": "make"},
    ]
    assert [line.text for line in timeline_text.tell(entries, names=False)] == ["ada ran “make”"]


def test_what_is_not_known_yet_is_still_told() -> None:
    assert told({**ADA, "kind": "levitate"}) == "ada levitate in web"


def test_a_long_reason_is_cut_and_flattened() -> None:
    text = told({**ADA, "kind": "stop", "why": "a\nb " + "x" * 200})
    assert "\n" not in text
    assert text.endswith("…”")
