"""Where a replay begins: at an offset, a time or a text, alone and together."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.output.replay import Finder, beginning
from holdfast.model.errors import HoldfastError

EVENTS: list[Any] = [
    (0, (10.0, "r", (80, 24))),
    (0, (10.0, "m", "ada started it")),
    (5, (11.0, "o", b"alpha")),
    (10, (20.0, "o", b"beta ga")),
    (15, (30.0, "o", b"mma \xc3")),
    (20, (40.0, "o", b"\xa9t\xc3\xa9")),
    (20, (41.0, "m", "bot (agent) typed")),
]


def first(start: str | None, search: str | None) -> int | None:
    begins = beginning(start, search, now=100.0)
    assert begins is not None
    return next((n for n, event in enumerate(EVENTS) if begins(event)), None)


@pytest.mark.parametrize(
    ("start", "search", "found"),
    [
        ("0", None, 0),
        ("4", None, 2),
        ("5", None, 3),
        ("19", None, 5),
        ("20", None, None),
        ("85", None, None),
        ("85s", None, 3),
        (None, "alpha", 2),
        (None, "gamma", 4),
        (None, "\xe9t\xe9", 5),
        (None, "bot (agent)", 6),
        (None, "ada", 1),
        (None, "omega", None),
        ("5", "a", 3),
        ("5", "alpha", None),
        ("65s", "gamma", None),
    ],
)
def test_the_first_event_to_play(start: str | None, search: str | None, found: int | None) -> None:
    assert first(start, search) == found


def test_without_a_wish_it_begins_at_the_beginning_and_nonsense_is_refused() -> None:
    assert beginning(None, None, 0.0) is None
    with pytest.raises(HoldfastError):
        beginning("whenever", None, 0.0)


def test_a_text_of_one_letter_is_found_too() -> None:
    finder = Finder("x")
    assert [finder((0, (0.0, "o", data))) for data in (b"abc", b"", b"axb")] == [False, False, True]
