"""Streams in one channel: credit, turns, priority, half close, reset, and when a number's place is free again."""

from __future__ import annotations

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.limits import (
    SEALED_CREDIT_BYTES,
    SEALED_PURPOSE_BYTES_MAX,
    SEALED_QUEUE_BYTES,
    SEALED_RECORD_BYTES,
    SEALED_STREAMS_MAX,
    SEALED_WINDOW_BYTES,
)
from holdfast.wire.sealed import frames
from holdfast.wire.sealed.errors import SealedError
from holdfast.wire.sealed.events import Closed, Credited, Data, Event, Opened, Pong, Reset
from holdfast.wire.sealed.frames import BULK, INTERACTIVE, frame
from holdfast.wire.sealed.mux import Mux


def carry(source: Mux, target: Mux, consume: bool = False) -> list[Event]:
    """Everything that waits in one mux, into the other; `consume` reads the bytes at once."""
    events: list[Event] = []
    while payload := source.next_payload():
        events += target.receive(payload)
    for event in events:
        if consume and isinstance(event, Data):
            target.consumed(event.stream, len(event.data))
    return events


def settle(left: Mux, right: Mux) -> None:
    while carry(left, right, consume=True) or carry(right, left, consume=True):
        pass


def opened(kind: int = BULK) -> tuple[Mux, Mux, int]:
    left, right = Mux(device=True), Mux(device=False)
    number = left.open(kind, b"purpose")
    assert carry(left, right) == [Opened(number, kind, b"purpose")]
    return left, right, number


def sent(payload: bytes) -> list[tuple[int, int, int]]:
    return [(kind, number, len(data)) for kind, number, data in frames.parse(payload)]


def test_the_device_opens_odd_numbers_and_the_host_even_ones() -> None:
    device, host = Mux(device=True), Mux(device=False)
    assert [device.open(BULK), device.open(BULK)] == [1, 3]
    assert [host.open(BULK), host.open(BULK)] == [2, 4]


def test_a_writer_stops_at_the_credit_and_goes_on_when_it_comes() -> None:
    left, right, number = opened()
    total = 0
    while count := left.write(number, b"x" * SEALED_RECORD_BYTES):
        total += count
        carry(left, right)
    assert total == SEALED_WINDOW_BYTES
    assert left.room(number) == 0
    right.consumed(number, SEALED_CREDIT_BYTES - 1)
    assert carry(right, left) == [], "small credits are collected"
    right.consumed(number, 1)
    assert carry(right, left) == [Credited(number)]
    assert left.room(number) == SEALED_CREDIT_BYTES == SEALED_QUEUE_BYTES


def test_a_queue_is_bounded() -> None:
    left, _, number = opened()
    assert left.write(number, b"x" * (1 << 20)) == SEALED_QUEUE_BYTES
    assert left.write(number, b"x") == 0


def test_a_slow_stream_does_not_hold_up_another() -> None:
    left, right, slow = opened()
    while left.write(slow, b"x" * SEALED_QUEUE_BYTES):
        carry(left, right)
    assert left.room(slow) == 0
    quick = left.open(BULK)
    total = 0
    while total < 4 * SEALED_WINDOW_BYTES:
        total += left.write(quick, b"y" * SEALED_QUEUE_BYTES)
        assert carry(left, right, consume=True)[-1].stream == quick  # type: ignore[union-attr]
        carry(right, left)
    assert left.room(slow) == 0


def test_a_keystroke_goes_before_bulk_that_waited_longer() -> None:
    left, right, bulk = opened()
    keys = left.open(INTERACTIVE)
    carry(left, right)
    left.write(bulk, b"x" * SEALED_QUEUE_BYTES)
    left.next_payload()
    left.write(keys, b"a")
    assert sent(left.next_payload())[0] == (frames.DATA, keys, 1)


def test_an_interactive_flood_leaves_bulk_its_share() -> None:
    left, right, bulk = opened()
    keys = left.open(INTERACTIVE)
    carry(left, right)
    left.write(bulk, b"x" * SEALED_QUEUE_BYTES)
    left.write(keys, b"y" * SEALED_QUEUE_BYTES)
    sizes = {number: size for _, number, size in sent(left.next_payload())}
    assert sizes[keys] > 2 * sizes[bulk] > SEALED_RECORD_BYTES // 4


def test_streams_of_one_class_take_turns() -> None:
    left, right, first = opened()
    second = left.open(BULK)
    carry(left, right)
    left.write(first, b"x" * SEALED_QUEUE_BYTES)
    left.write(second, b"y" * SEALED_QUEUE_BYTES)
    assert {number for _, number, _ in sent(left.next_payload())} == {first, second}


def test_one_direction_closes_and_the_other_goes_on() -> None:
    left, right, number = opened()
    left.write(number, b"question")
    left.close(number)
    assert carry(left, right) == [Data(number, b"question"), Closed(number)]
    right.write(number, b"answer")
    assert carry(right, left) == [Data(number, b"answer")]
    with pytest.raises(LookupError):
        left.write(number, b"more")


def test_a_stream_counts_until_its_bytes_are_consumed() -> None:
    left, right, number = opened()
    left.write(number, b"unread")
    left.close(number)
    carry(left, right)
    right.close(number)
    carry(right, left)
    assert number in right._streams
    assert number in left._streams
    right.consumed(number, 6)
    settle(left, right)
    assert not left._streams
    assert not right._streams


def test_a_reset_drops_what_is_queued_and_what_is_under_way() -> None:
    left, right, number = opened()
    right.write(number, b"under way")
    under_way = right.next_payload()
    left.write(number, b"queued")
    left.reset(number)
    assert sent(left.next_payload()) == [(frames.RESET, number, 0)]
    assert left.receive(under_way) == []
    assert right.receive(frame(frames.RESET, number)) == [Reset(number)]
    assert right.room(number) == 0
    with pytest.raises(LookupError):
        right.write(number, b"more")
    right.consumed(number, 0)
    right.close(number)
    right.reset(number)
    assert right.next_payload() == b""


def test_a_stream_that_was_given_up_is_over_before_the_other_side_knows() -> None:
    left, right, number = opened()
    right.write(number, b"under way")
    left.reset(number)
    assert left.room(number) == 0
    with pytest.raises(LookupError):
        left.write(number, b"more")
    left.close(number)
    assert carry(right, left) == [], "what is under way is dropped"
    assert sent(left.next_payload()) == [(frames.RESET, number, 0)]


def test_a_ping_is_answered_and_a_flood_of_them_by_one() -> None:
    left, right = Mux(device=True), Mux(device=False)
    left.ping(7)
    carry(left, right)
    assert carry(right, left) == [Pong(7)]
    right.receive(frame(frames.PING, 0, frames.u64(1)) * 1000)
    assert carry(right, left) == [Pong(1)]


def test_this_side_opens_no_more_streams_than_allowed() -> None:
    left = Mux(device=True)
    for _ in range(SEALED_STREAMS_MAX):
        left.open(BULK)
    with pytest.raises(HoldfastError) as e:
        left.open(BULK)
    assert e.value.code == "quota"


def test_the_last_number_is_not_passed() -> None:
    left = Mux(device=True)
    left._next = (1 << 32) - 1
    assert left.open(BULK) == (1 << 32) - 1
    with pytest.raises(SealedError) as e:
        left.open(BULK)
    assert e.value.reason == "exhausted"


def test_a_place_is_free_again_when_both_sides_are_done() -> None:
    left, right = Mux(device=True), Mux(device=False)
    for _ in range(3 * SEALED_STREAMS_MAX):
        number = left.open(BULK)
        left.write(number, b"text")
        left.close(number)
        right_events = carry(left, right, consume=True)
        assert right_events
        right.close(number)
        settle(left, right)
    assert not left._streams


def test_a_purpose_is_bounded() -> None:
    with pytest.raises(ValueError, match="purpose"):
        Mux(device=True).open(BULK, b"x" * (SEALED_PURPOSE_BYTES_MAX + 1))
