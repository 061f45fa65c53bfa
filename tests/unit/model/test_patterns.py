"""Expressions of callers: what one search may cost, whatever the expression; and that sensible ones work."""

from __future__ import annotations

import pytest

from holdfast.model import limits
from holdfast.model.errors import HoldfastError
from holdfast.model.patterns import pattern

SENSIBLE = ["error|warn", r"(?i)listening on .*:\d+", r"\w+\s+\d{1,3}", r"\p{L}+", "(x+x+)+y", "", ".{0,200}$"]
COSTLY = [
    "(?:(?:.?.?.?){330}){3}c",
    "(?:(?:a?b?c?d?){200}){4}x",
    r"(?i)(?:[^\x00-\x10]?){990}z",
    r"(?:\pL?){900}x",
    ".{1000}x",
]


@pytest.mark.parametrize("text", COSTLY)
def test_an_expression_that_costs_too_much_is_refused(text: str) -> None:
    with pytest.raises(HoldfastError, match="too many to search for") as refused:
        pattern(text)
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("text", [*SENSIBLE, "(?:a?){500}a{500}b"])
def test_instructions_times_window_stay_within_their_product(text: str) -> None:
    found = pattern(text)
    assert found._compiled.programsize * found.window_bytes <= limits.MATCH_STEPS_MAX
    assert limits.MATCH_WINDOW_BYTES_MIN <= found.window_bytes <= limits.MATCH_WINDOW_BYTES
    assert 2 * found.span_bytes <= found.window_bytes
    with pytest.raises(ValueError, match="more than one window"):
        found.search(bytes(found.window_bytes + 1))


@pytest.mark.parametrize("text", ["(", "a{2}{1000}", r"\1", "(?<=a)b", "\ud800"])
def test_what_is_no_expression_is_said_in_one_line(text: str) -> None:
    with pytest.raises(HoldfastError) as refused:
        pattern(text)
    assert (refused.value.code, "\n" in refused.value.line()) == ("invalid", False)


def test_letters_of_any_alphabet_and_bytes_of_none() -> None:
    assert pattern("[äö]+").search("-äöä-".encode()) == (1, 7)
    assert pattern("[äö]").search("ã".encode()) is None
    assert pattern(b"\xff+".decode("utf-8", "surrogateescape")).search(b"a\xff\xffb") == (1, 3)


def test_a_long_text_is_searched_in_windows_that_overlap() -> None:
    found = pattern("(?:a?){500}a{500}b")
    for at in range(found.window_bytes - 700, found.window_bytes + 700, 100):
        assert found.matches(b"-" * at + b"a" * 500 + b"b" + b"-" * found.window_bytes)
    assert not found.matches(b"-" * 3 * found.window_bytes)
    assert pattern("^$").matches(b"")
