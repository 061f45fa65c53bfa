"""config.toml of the home: what it says of takeovers, and what a mistake in it does."""

from __future__ import annotations

import pytest

from holdfast.model import config_toml
from holdfast.model.limits import TAKEOVER_S
from holdfast.model.patterns import pattern


def test_takeover_max_is_a_length_of_time_and_twelve_hours_unless_told() -> None:
    assert config_toml.parse("", pattern).takeover_s == TAKEOVER_S == 12 * 3600
    told = config_toml.parse('takeover_max = "90m"\n', pattern)
    assert (told.takeover_s, told.broken) == (5400, None)


def test_a_change_of_takeover_max_is_a_change_and_files_without_it_are_as_before() -> None:
    empty = config_toml.Settings().digest
    assert config_toml.parse("", pattern).digest == empty
    assert config_toml.parse('takeover_max = "90m"\n', pattern).digest != empty


@pytest.mark.parametrize("value", ["5", '"soon"', '"0s"', '"40d"', "true", "[]"])
def test_what_is_no_time_is_a_mistake_in_the_file(value: str) -> None:
    broken = config_toml.parse(f"takeover_max = {value}\n", pattern)
    assert broken.broken is not None
    assert broken.broken.code == "invalid"
    assert broken.takeover_s == TAKEOVER_S
