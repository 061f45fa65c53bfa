"""Marks are found across any chunk borders, only with the right token, and without keeping what was seen."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.exec.marks import MARK_BYTES, Mark, MarkScanner, mark

TOKEN = "00112233445566778899aabbccddeeff"
OTHER = "ff112233445566778899aabbccddeeff"
BEGIN, END = mark("b", TOKEN), mark("e", TOKEN)

# Pieces that together hold real marks, forged ones, and torn or doubled halves of them.
PIECES = st.lists(
    st.sampled_from(
        [
            b"text",
            b"\x1b",
            b"\r\n",
            BEGIN,
            END,
            mark("e", OTHER),
            BEGIN[:20],
            END[20:],
            b"\x1b]7733;x;" + TOKEN.encode() + b"\x07",
        ]
    ),
    max_size=12,
)


def naive(stream: bytes, base: int) -> list[Mark]:
    """Every place where a whole mark stands."""
    found = []
    for at in range(len(stream)):
        for kind, whole in (("b", BEGIN), ("e", END)):
            if stream.startswith(whole, at):
                found.append(Mark(kind, base + at, base + at + len(whole)))  # type: ignore[arg-type]
    return found


@given(PIECES, st.lists(st.integers(0, 600), max_size=8), st.integers(0, 1 << 60))
def test_any_chunking_gives_the_same_marks(pieces: list[bytes], cuts: list[int], base: int) -> None:
    stream = b"".join(pieces)
    borders = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    scanner = MarkScanner(TOKEN)
    found: list[Mark] = []
    for start, end in itertools.pairwise(borders):
        found += scanner.feed(base + start, stream[start:end])
    assert found == naive(stream, base)


def test_byte_by_byte_gives_the_same_marks() -> None:
    stream = b"prompt " + BEGIN + b"out" + mark("e", OTHER) + b"more" + END + b"$ "
    scanner = MarkScanner(TOKEN)
    found = [found for at in range(len(stream)) for found in scanner.feed(at, stream[at : at + 1])]
    assert found == [Mark("b", 7, 7 + len(BEGIN)), Mark("e", len(stream) - 2 - len(END), len(stream) - 2)]


def test_bytes_that_were_seen_before_are_skipped() -> None:
    stream = b"ab" + BEGIN + b"cd" + END
    scanner = MarkScanner(TOKEN)
    found = scanner.feed(0, stream[:30])
    found += scanner.feed(10, stream[10:50])
    found += scanner.feed(0, stream)
    found += scanner.feed(0, stream)
    assert [(mark.kind, mark.start) for mark in found] == [("b", 2), ("e", 4 + len(BEGIN))]


def test_a_mark_is_not_put_together_across_a_gap() -> None:
    scanner = MarkScanner(TOKEN)
    assert scanner.feed(0, BEGIN[:20]) == []
    assert scanner.feed(21, BEGIN[20:]) == []
    assert [mark.kind for mark in scanner.feed(100, END)] == ["e"]


def test_a_scanner_keeps_less_than_one_mark() -> None:
    scanner = MarkScanner(TOKEN)
    for number in range(50):
        scanner.feed(number * 65536, b"x" * 65536)
    kept = sum(sys.getsizeof(value) for value in vars(scanner).values() if isinstance(value, bytes))
    assert kept < 1024


@pytest.mark.parametrize("token", ["", "g" * 32, OTHER.upper()])
def test_a_token_of_another_form_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="token"):
        MarkScanner(token)


def test_a_mark_is_as_long_as_whoever_waits_for_one_is_told() -> None:
    assert len(mark("b", "0" * 32)) == len(mark("e", "f" * 32)) == MARK_BYTES
