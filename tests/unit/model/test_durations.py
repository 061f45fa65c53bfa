"""Lengths of time and moments, as people write them."""

from __future__ import annotations

import pytest

from holdfast.model.durations import duration_s, moment_s
from holdfast.model.errors import HoldfastError

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("250ms", 0.25), ("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86400), ("1h30m", 5400)],
)
def test_a_duration_is_a_number_with_an_optional_unit_or_a_sum_of_them(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "5 m", "m", "1w", "nan", "inf", "1e9", "٣", "5m later"])
def test_what_is_no_duration_is_said_in_one_line(text: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        duration_s(text)
    assert caught.value.exit_status == 2
    assert "\n" not in caught.value.line()


def test_a_moment_is_so_long_ago_or_a_time() -> None:
    assert moment_s("10m", NOW) == NOW - 600
    assert moment_s("123456s", NOW) == NOW - 123456
    assert moment_s("2026-01-31T12:00:00Z", NOW) == 1769860800
    assert moment_s("2026-01-31T13:00:00+01:00", NOW) == 1769860800
    assert moment_s("20260131T120000Z", NOW) == 1769860800


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "12:00", "0001-01-01T00:00:00"])
def test_what_is_no_moment_is_said_in_one_line(text: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        moment_s(text, NOW)
    assert caught.value.exit_status == 2
