"""Output as plain text for pipes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.term.plain_text import to_text
from tests.support.soak import examples
from tests.unit.term.test_queries import OTHERS, QUESTIONS

CASES = {
    b"one\r\ntwo\n": "one\ntwo\n",
    b"\x1b[1;31mred\x1b[0m": "red",
    b"\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "textlink",
    b"\x1bPq#0~\x1b\\a\x1b_Gx\x07y\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d": "abcd",
    b"\x1b(B\x1b)0\x1b=\x1b>\x1b7\x1b8\x1bM\x1b#8ok": "ok",
    b"10%\r50%\r100%\r\ndone": "100%\ndone",
    b"text\r\r\n": "text\n",
    b"$ ls\r\n\x1b[?2004l\rfile\r\n": "$ ls\nfile\n",
    b"a\tb": "a\tb",
    b"\x07bell\x00nul\x7fdel\x0bvt": "bellnuldelvt",
    b"spin |\x08/\x08-\x08done": "spin done",
    b"N\x08Na\x08am\x08me _\x08x": "Name x",
    b"\x08\x08start": "start",
    b"caf\xc3\xa9 \xff \xe6\xbc": "café � �",
    b"\xc2\x9b31mred\xc2\x85": "red",
    b"cut \x1b[3": "cut ",
    b"cut \x1b]0;ti": "cut ",
    b"cut \x1b": "cut ",
    b"\x1b]0;a\x18b": "b",
    b"\x1b[31\x1b[32mx": "x",
}


@pytest.mark.parametrize("data", CASES, ids=repr)
def test_text_without_what_terminals_act_on(data: bytes) -> None:
    assert to_text(data) == CASES[data]


SEQUENCES = [s for s in QUESTIONS + OTHERS if s.startswith(b"\x1b") and b"\n" not in s and b"tmux" not in s]


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda data: repr(data[:30]))
def test_every_known_sequence_disappears(sequence: bytes) -> None:
    assert to_text(b"a" + sequence + b"b") == "ab"


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=300))
def test_nothing_but_text_comes_out(data: bytes) -> None:
    assert all(
        character in "\n\t" or (character >= " " and not "\x7f" <= character <= "\x9f") for character in to_text(data)
    )


@pytest.mark.parametrize(
    "unit", [b"\x1b]", b"\x1b", b"\x1b[", b"\x1b[1;", b"x\r", b"\r", b"\x08", b"x\x08", b"\x1bP", b"\xc2\x9d", b"\n\r"]
)
def test_hostile_repetition_takes_linear_time(unit: bytes) -> None:
    """Quadratic time would take hours here, and the suite's guard against hangs would say so."""
    to_text(unit * 500_000)


def test_megabytes_of_one_open_string_are_nothing() -> None:
    assert to_text(b"before\x1b]0;" + b"x" * 20_000_000) == "before"
