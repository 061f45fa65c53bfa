"""`restore` case by case: each state comes back whole, and the same bytes afterwards have the same effect."""

from __future__ import annotations

import pytest

from holdfast.term.reset import reset_sequence
from holdfast.term.screen import Screen
from holdfast.term.terminal_filter import TerminalFilter
from tests.unit.term.compare import assert_same, differences, restored

# What a program wrote before the client attached, and what it writes then.
CASES = {
    "plain text": (b"one\r\ntwo", b"\r\nthree"),
    "erased cells keep their background": (
        b"\x1b[44mab\x1b[K\r\n\x1b[48;2;1;2;3m\x1b[2K\x1b[5;5H\x1b[45m\x1b[3X\x1b[m",
        b"x",
    ),
    "a cleared screen keeps its background": (b"\x1b[48;5;17m\x1b[2Jtext", b"\r\nmore"),
    "every attribute": (
        b"\x1b[1ma\x1b[2mb\x1b[3mc\x1b[4md\x1b[5me\x1b[7mf\x1b[8mg\x1b[9mh\x1b[53mi\x1b[21mj\x1b[4:3mk",
        b"l",
    ),
    "colours of every kind": (
        b"\x1b[31;102ma\x1b[38;5;99;48;5;200mb\x1b[38;2;1;2;3;48;2;4;5;6mc\x1b[4;58:2::7:8:9md",
        b"e",
    ),
    "blanks are not spaces": (b"a\x1b[10Cb \x1b[5Cc   ", b"d"),
    "a wrapped line is one line": (b"x" * 70, b"y" * 30),
    "a coloured wrapped line": (b"\x1b[41m" + b"x" * 70 + b"\x1b[m\r\nnext", b"y"),
    "a wrapped line that begins with a blank": (b"x" * 60 + b"\x1b[2;1H\x1b[X\x1b[3;1H", b"y"),
    "a wide character that wrapped": (b"\x1b[42m" + b"x" * 29 + "漢字".encode(), "字".encode()),
    "wide characters and emoji": ("漢字 😀 e\u0301 가\r\n".encode() * 3, b"x"),
    "joined emoji in cluster mode": ("\x1b[?2027h👩‍💻 🇩🇪 ☁️ é".encode(), "👩‍💻".encode()),
    "joined emoji without": ("👩‍💻 🇩🇪 ☁️ é".encode(), "👩‍💻".encode()),
    "the cursor waits to wrap": (b"x" * 30, b"y"),
    "the cursor waits to wrap after a wide character": (b"x" * 28 + "漢".encode(), b"y"),
    "the cursor waits to wrap in colour": (b"\x1b[31;44m" + b"x" * 30 + b"\x1b[m", b"y"),
    "a hidden cursor elsewhere": (b"text\x1b[3;7H\x1b[?25l", b"x\x1b[?25h"),
    "a blinking bar": (b"\x1b[5 q", b"\x1b[0 q"),
    "a pen": (b"\x1b[1;35;44m", b"text\x1b[K"),
    "an open link": (b"\x1b]8;id=7;https://example.org/a?b=c\x1b\\one", b"two\x1b]8;;\x1b\\three"),
    "protected cells": (b'\x1b[1"qkeep\x1b[0"q lose', b"\x1b[1;1H\x1b[?2K"),
    "margins": (b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[4;1H", b"\n\n"),
    "margins on all sides": (b"\x1b[?69h\x1b[3;20s\x1b[2;6r\x1b[3;5Htext", b"\r\n\n\n\n" + b"x" * 30),
    "origin mode": (b"\x1b[3;6r\x1b[?6h\x1b[2;2Hx", b"\x1b[1;1Hy"),
    "insert mode": (b"abc\x1b[1;2H\x1b[4h", b"XY"),
    "no autowrap": (b"\x1b[?7l" + b"x" * 40, b"y"),
    "line drawing": (b"\x1b(0lqk\x1b(B\r\n\x1b)0\x0e", b"mqj\x0fq"),
    "tab stops": (b"\x1b[3g\x1b[5G\x1bH\x1b[12G\x1bH\r", b"\ta\tb"),
    "keyboard flags": (b"\x1b[>1u\x1b[>5u\x1b[>4;2m", b"\x1b[<u"),
    "keyboard flags of both screens": (b"\x1b[>3u\x1b[?1049h\x1b[>7u\x1b[>15u", b"\x1b[<u\x1b[?1049l"),
    "keyboard flags of a screen left behind": (b"\x1b[?1049h\x1b[>7u\x1b[?1049l", b"x"),
    "mouse, paste, focus, keypad": (b"\x1b[?1000;1003;1006;2004;1004;1;66h\x1b[?1007h", b"\x1b[?1003l"),
    "a mouse mode that was turned off by another": (b"\x1b[?1002h\x1b[?1000l", b"\x1b[?1002h"),
    "reverse video and sync": (b"\x1b[?5h\x1b[?2026htext", b"\x1b[?2026l"),
    "saved modes": (b"\x1b[?2004h\x1b[?2004s\x1b[?2004l", b"\x1b[?2004r"),
    "a saved cursor": (b"\x1b[3;4H\x1b[31m\x1b(0\x1b7\x1b[m\x1b(B\x1b[1;1Htext", b"\x1b8qx"),
    "title, folder and colours": (
        b"\x1b]2;a \xc3\xa9 title\x07\x1b]7;file:///tmp\x07\x1b]4;3;#abcdef\x07\x1b]11;#111213\x07",
        b"",
    ),
    "history": (b"".join(b"\x1b[3%dmline %d\x1b[m\r\n" % (n % 8, n) for n in range(40)), b"last\r\n"),
    "history with colours to the edge": (
        b"".join(b"\x1b[4%dmline %d\x1b[K\r\n" % (n % 8, n) for n in range(40)),
        b"\x1b[m",
    ),
    "the alternate screen over the primary one": (
        b"below\r\n\x1b[31mred\x1b[?1049h\x1b[H\x1b[44m\x1b[2Jover\x1b[3;3Hit",
        b"\x1b[m\x1b[?1049l here",
    ),
    "the alternate screen over history": (
        b"".join(b"line %d\r\n" % n for n in range(30)) + b"\x1b[?1049hover",
        b"\x1b[?1049lback",
    ),
    "the alternate screen by its older names": (b"below\x1b[?1047hover", b"\x1b[?1047l here"),
    "the alternate screen and a waiting cursor": (b"x" * 30 + b"\x1b[?1049hover", b"\x1b[?1049ly"),
    "an unfinished sequence": (b"text\x1b[3", b"1mred"),
    "an unfinished title": (b"text\x1b]2;ti", b"tle\x07more"),
    "an unfinished character": (b"text\xe6\xbc", b"\xa2!"),
    "an unfinished device control string": (b"text\x1bPq#0;2;0", b";0;0~\x1b\\more"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_state_comes_back_whole_and_goes_on_the_same(name: str) -> None:
    before, after = CASES[name]
    with Screen(30, 8) as original:
        original.feed(before)
        with restored(original) as copy:
            assert_same(original, copy, "right after restoring")
            original.feed(after)
            copy.feed(after)
            assert_same(original, copy, "after more output")


@pytest.mark.parametrize("name", CASES)
def test_restoring_asks_the_terminal_nothing(name: str) -> None:
    before, _after = CASES[name]
    with Screen(30, 8) as original, Screen(30, 8) as copy:
        original.feed(before)
        drawn = original.restore()
        assert copy.feed(drawn) == b""
        passing = TerminalFilter()
        passed = passing.strip(drawn)
        assert drawn.startswith(passed)
        assert passed == drawn or passing.open  # what the output goes on with is held back until it is whole


@pytest.mark.parametrize("name", CASES)
def test_what_was_on_the_terminal_before_does_not_show_through(name: str) -> None:
    before, _after = CASES[name]
    with Screen(30, 8) as original, Screen(30, 8) as used:
        original.feed(before)
        used.feed(b"\x1b[45mold text\x1b[2;5r\x1b[?1049h\x1b[?6h\x1b[4h\x1b(0more" + b"z" * 100)
        used.feed(reset_sequence() + original.restore(history=0))
        expected, actual = original.dump(), used.dump()
        for description in (expected, actual):
            description["history"] = []  # what the user had before stays in the user's scrollback
            description["modes"].pop("autorepeat")  # keys repeat unless a program says otherwise
            for grid in ("primary", "alternate"):
                description.get(grid, {}).pop("saved_cursor", None)  # a slot that every program overwrites
        assert differences(expected, actual) == []


def test_less_history_is_restored_on_request() -> None:
    with Screen(30, 8) as original, Screen(30, 8) as copy:
        original.feed(b"".join(b"line %d\r\n" % n for n in range(100)))
        copy.feed(original.restore(history=10))
        assert copy.text() == original.text()
        assert copy.dump()["history"] == original.dump()["history"][-10:]


def test_reports_that_a_terminal_sends_unasked_are_left_to_the_emulator() -> None:
    with Screen(30, 8) as original:
        original.feed(b"\x1b[?2048h\x1b[?2031h")
        assert b"2048" not in original.restore()
        assert b"2031" not in original.restore()


def test_an_endless_string_costs_little_and_ends_like_any_other() -> None:
    for opening, closing in (
        (b"\x1b]52;c;", b"\x07"),
        (b"\x1bPq", b"\x1b\\"),
        (b"\x1b_G", b"\x1b\\"),
        (b"\x1b[", b"m"),
    ):
        with Screen(30, 8) as original:
            original.feed(b"before" + opening)
            for _ in range(40):
                original.feed(b"1" * 65536)
            assert not original.at_ground
            assert len(original.keyframe()) < 1_000_000
            assert original.text().startswith("before")
            with restored(original) as copy:
                for screen in (original, copy):
                    screen.feed(b"1;1" + closing + b" after")
                assert original.text().startswith("before after")
                assert_same(original, copy, "after the end")
