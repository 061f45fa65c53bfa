"""`restore` and `keyframe` over random output: what a table of cases does not think of."""

from __future__ import annotations

import random

import pytest

from holdfast.term.screen import Screen
from tests.unit.term.compare import differences, restored
from tests.unit.term.streams import hostile, output

# What a terminal does not let anyone bring back, besides the last two rows of the first list it is invisible:
# a saved cursor that waited to wrap; a cursor that waits to wrap on a cell that was erased since; that two rows
# were once one line when nothing of the line is left at their border.
_LOST = ("/saved_cursor/pending_wrap", "/cursor/pending_wrap", "/wraps")


def _visible(expected: Screen, actual: Screen) -> list[str]:
    found = differences(expected.dump(), actual.dump())
    return [line for line in found if not line.partition(":")[0].endswith(_LOST)]


@pytest.mark.parametrize("seed", range(24))
def test_a_random_screen_comes_back_whole(seed: int) -> None:
    source = random.Random(seed)
    cols, rows = source.choice([(43, 17), (80, 24), (11, 5)])
    with Screen(cols, rows, scrollback_lines=200) as original:
        for _ in range(12):
            original.feed(output(source, 25))
            with restored(original) as copy:
                assert _visible(original, copy) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_random_keyframe_is_the_same_screen_and_goes_on_the_same(seed: int) -> None:
    source = random.Random(seed)
    with Screen(43, 17, scrollback_lines=200) as original:
        for _ in range(8):
            original.feed(output(source, 25)[:-1])  # often in the middle of something
            with Screen.from_keyframe(original.keyframe()) as copy:
                assert differences(original.dump(), copy.dump()) == []
                more = output(source, 25)
                assert original.feed(more) == copy.feed(more)
                assert differences(original.dump(), copy.dump()) == []


@pytest.mark.parametrize("seed", range(8))
def test_hostile_bytes_break_nothing(seed: int) -> None:
    """About half a megabyte each, through everything that reads a screen."""
    source = random.Random(seed)
    with Screen(43, 17, scrollback_lines=100) as screen:
        for _ in range(32):
            screen.feed(hostile(source, 16384))
            if source.randrange(4) == 0:
                screen.resize(source.randrange(1, 120), source.randrange(1, 60))
            drawn = screen.restore()
            with Screen(*screen.size) as copy:
                copy.feed(drawn)
                copy.text()
            with Screen.from_keyframe(screen.keyframe()) as copy:
                assert copy.text() == screen.text()
            screen.contents()
            screen.modes()
