"""A client that attaches at any moment sees what the program drew, and goes on seeing it: with real programs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from holdfast.term.screen import Screen
from tests.unit.term.compare import assert_same, restored
from tests.unit.term.programs import NEEDS, PROGRAMS, record

pytestmark = pytest.mark.process

SIZES = [(80, 24), (120, 40), (43, 17)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_restored_screen_equals_the_original_and_stays_equal(
    name: str, size: tuple[int, int], tmp_path: Path
) -> None:
    if shutil.which(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    output, checkpoints = record(name, size, tmp_path)
    # Halfway points fall anywhere, in the middle of sequences and characters too.
    halves = [(a + b) // 2 for a, b in zip([0, *checkpoints], [*checkpoints, len(output)], strict=True)]
    original = Screen(*size)
    attached: list[tuple[int, Screen]] = []
    before = 0
    for point in sorted({*checkpoints, *halves, len(output)}):
        original.feed(output[before:point])
        for _, screen in attached:
            screen.feed(output[before:point])
        before = point
        for began, screen in attached:
            assert_same(original, screen, f"attached at {began}, differs at {point}")
        attached.append((point, restored(original)))
        assert_same(original, attached[-1][1], f"differs right after attaching at {point}")
    for screen in (original, *(screen for _, screen in attached)):
        screen.close()
