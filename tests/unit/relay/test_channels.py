"""Channels of a relay node: each message goes to the other end, and to no other line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.errors import HoldfastError
from holdfast.model.limits import RELAY_DEVICE_CHANNELS_MAX, RELAY_HOST_CHANNELS_MAX
from holdfast.relay import channels as relay_channels
from holdfast.relay.channels import Channels, End

HOST_LINE = 100


def test_messages_go_to_the_other_end() -> None:
    channels = Channels()
    host = channels.open(End(1, 7), HOST_LINE)
    assert host.line == HOST_LINE
    assert channels.other(End(1, 7)) == host
    assert channels.other(host) == End(1, 7)


def test_a_line_cannot_name_another_lines_channel() -> None:
    channels = Channels()
    channels.open(End(1, 7), HOST_LINE)
    assert channels.other(End(2, 7)) is None
    assert channels.close(End(2, 7)) is None
    assert channels.other(End(1, 7)) is not None


def test_a_closed_channel_is_gone_for_both_and_its_number_at_the_host_is_not_used_again() -> None:
    channels = Channels()
    host = channels.open(End(1, 7), HOST_LINE)
    assert channels.close(host) == End(1, 7)
    assert channels.other(End(1, 7)) is None
    assert channels.close(End(1, 7)) is None
    assert channels.open(End(1, 7), HOST_LINE).number > host.number


def test_a_line_that_goes_takes_its_channels_and_tells_the_other_ends() -> None:
    channels = Channels()
    channels.open(End(1, 1), HOST_LINE)
    channels.open(End(1, 2), HOST_LINE + 1)
    kept = channels.open(End(2, 1), HOST_LINE)
    assert [end.line for end in channels.drop(1)] == [HOST_LINE, HOST_LINE + 1]
    assert channels.other(kept) == End(2, 1)
    assert channels.drop(HOST_LINE) == [End(2, 1)]
    assert not channels._other
    assert not channels._of_line


@pytest.mark.parametrize("number", [0, -1, 1 << 32])
def test_a_number_that_cannot_be_is_refused(number: int) -> None:
    with pytest.raises(HoldfastError) as e:
        Channels().open(End(1, number), HOST_LINE)
    assert e.value.code == "invalid"


def test_a_number_in_use_is_refused() -> None:
    channels = Channels()
    channels.open(End(1, 1), HOST_LINE)
    with pytest.raises(HoldfastError) as e:
        channels.open(End(1, 1), HOST_LINE)
    assert e.value.code == "invalid"


def test_a_device_has_a_bounded_number_of_channels() -> None:
    channels = Channels()
    for n in range(RELAY_DEVICE_CHANNELS_MAX):
        channels.open(End(1, n + 1), HOST_LINE + n)
    with pytest.raises(HoldfastError) as e:
        channels.open(End(1, 1000), HOST_LINE)
    assert e.value.code == "quota"
    channels.open(End(2, 1), HOST_LINE)


def test_a_host_has_a_bounded_number_of_channels() -> None:
    channels = Channels()
    for n in range(RELAY_HOST_CHANNELS_MAX):
        channels.open(End(1000 + n, 1), HOST_LINE)
    with pytest.raises(HoldfastError) as e:
        channels.open(End(1, 1), HOST_LINE)
    assert e.value.code == "quota"
    assert channels.other(End(1, 1)) is None


def test_a_hosts_numbers_end_one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_channels, "_NUMBERS", 2)
    channels = Channels()
    channels.close(channels.open(End(1, 1), HOST_LINE))
    with pytest.raises(HoldfastError) as e:
        channels.open(End(1, 1), HOST_LINE)
    assert e.value.code == "quota"
    channels.drop(HOST_LINE)
    channels.open(End(1, 1), HOST_LINE)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.sampled_from(["open", "close", "drop"]), st.integers(1, 4), st.integers(1, 4)), max_size=40)
)
def test_ends_are_always_pairs(steps: list[tuple[str, int, int]]) -> None:
    channels = Channels()
    for action, line, number in steps:
        end = End(line, number)
        if action == "open" and channels.other(end) is None:
            channels.open(end, HOST_LINE + number % 2)
        elif action == "close":
            channels.close(end)
        elif action == "drop":
            channels.drop(line if number > 1 else HOST_LINE)
        assert all(channels._other[other] == one for one, other in channels._other.items())
        listed = {End(at, n) for at, numbers in channels._of_line.items() for n in numbers}
        assert listed == set(channels._other)
