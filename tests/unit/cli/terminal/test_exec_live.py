"""The excerpt that `hold exec` shows: the command's own bytes, whichever of output and ending arrives first."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.terminal.exec_live import CommandOutput

MARK = b"\x1b]7733;e;" + b"0" * 32 + b"\a"
WHOLE = b"one\r\ntwo\r\n" + MARK + b"prompt$ "
END = 100 + len(b"one\r\ntwo\r\n")


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6), st.integers(0, 7))
def test_the_output_is_shown_whole_however_it_is_cut_and_whenever_the_end_is_told(cuts: list[int], told: int) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    excerpt, shown = CommandOutput(100, raw=False), b""
    for n, (a, b) in enumerate(itertools.pairwise(places)):
        if n == told:
            shown += excerpt.give(b"", END)
        shown += excerpt.give(WHOLE[a:b], END if n >= told else None)
    shown += excerpt.give(b"", END)
    assert shown == b"one\ntwo\n"


def test_an_end_that_is_told_before_any_output_cuts_nothing_off() -> None:
    """Once the first bytes were measured from the wrong place and a quick command showed nothing."""
    excerpt = CommandOutput(100, raw=True)
    assert excerpt.give(b"", END) == b""
    assert excerpt.give(WHOLE, END) == b"one\r\ntwo\r\n"


def test_a_look_alike_mark_is_not_held_for_ever() -> None:
    excerpt = CommandOutput(0, raw=True)
    assert excerpt.give(b"a\x1b]7733;b", None) == b"a"
    assert len(excerpt.give(b"x" * (2 << 20), None)) > 1 << 20


def test_a_gap_is_skipped() -> None:
    excerpt = CommandOutput(0, raw=True)
    excerpt.skip(50)
    assert excerpt.give(b"after", 53) == b"aft"
