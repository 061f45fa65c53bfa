"""OSC 7501: what a program says of itself, read in whatever pieces it comes."""

from __future__ import annotations

import base64

import pytest

from holdfast.model.sessions.program_status import Listener, read

BLOCKED = (
    b"\x1b]7501;state=blocked:app=claude-code:kind=permission:msg=" + base64.b64encode(b"approve Bash: ls") + b"\x1b\\"
)
ASKED = b"\x1b]7501;?\x07"


@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\"])
def test_a_question_and_a_report_are_heard_at_every_split(end: bytes) -> None:
    stream = b"text\x1b[1m\x1b]7501;?" + end + b"more" + BLOCKED[:-2] + end + b"\x1b[0m"
    for cut in range(len(stream) + 1):
        listener = Listener()
        heard = [listener.hear(stream[:cut]), listener.hear(stream[cut:])]
        assert sum(asked for asked, _ in heard) == 1, cut
        said = [report for _, report in heard if report]
        assert said == [
            {"state": "blocked", "app": "claude-code", "kind": "permission", "message": "approve Bash: ls"}
        ], cut


def test_it_is_heard_byte_by_byte_and_the_last_report_counts() -> None:
    listener = Listener()
    heard = [listener.hear(bytes([b])) for b in ASKED + BLOCKED + b"\x1b]7501;state=idle:app=codex\x07"]
    assert [asked for asked, _ in heard].count(True) == 1
    assert [r["state"] for _, r in heard if r] == ["blocked", "idle"]


def test_what_is_broken_off_or_overlong_is_not_kept() -> None:
    listener = Listener()
    listener.hear(b"\x1b]7501;state=idle")
    assert listener.hear(b"\x1b[31m") == (False, None)
    assert listener.hear(b":app=x\x07") == (False, None), "another sequence broke it off"
    for _ in range(100):
        assert listener.hear(b"\x1b]7501;" + b"x" * 1000) == (False, None)
    assert len(listener._held) < 10_000
    assert listener.hear(b"\x07" + BLOCKED)[1] is not None


@pytest.mark.parametrize("payload", [b"", b"?", b"state=", b"state=root", b"app=x", b"state=idle;app=x", b"\xff\xfe"])
def test_what_is_no_known_report_is_none(payload: bytes) -> None:
    assert read(payload) is None


def test_the_texts_of_a_program_are_bounded_and_plain() -> None:
    message = base64.b64encode(b"a\x1b[2J\nb" + b"x" * 3000)
    said = read(b"state=blocked:app=\x1b]0;:kind=" + b"k" * 50 + b":msg=" + message)
    assert said is not None
    assert (said["app"], said["kind"]) == (None, None)
    assert said["message"] is not None
    assert said["message"].startswith("a [2J b")
    assert len(said["message"]) == 200
    assert read(b"state=idle:msg=!!")["message"] is None  # type: ignore[index]
