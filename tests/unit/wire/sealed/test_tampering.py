"""An adversary on the wire: whatever it does to the records, the receiver delivers a prefix and ends with a reason."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.wire.sealed import frames
from holdfast.wire.sealed.channel import ENDED
from holdfast.wire.sealed.events import Data, Event
from tests.support.sealed import Channel, connected, device, drain, host, reason, records

Tamper = Callable[[list[bytes], int, int], list[bytes]]
TEXTS = [bytes((65 + n,)) * size for n, size in enumerate((1, 60, 900, 5000, 20, 3))]


def talk(channel: Channel) -> list[bytes]:
    """One record for each text, on one stream."""
    number = channel.streams.open(frames.BULK)
    sealed = []
    for text in TEXTS:
        channel.streams.write(number, text)
        sealed += records(channel)
    assert len(sealed) == len(TEXTS)
    return sealed


def delivered(events: list[Event]) -> list[bytes]:
    return [event.data for event in events if isinstance(event, Data)]


def flip(sealed: list[bytes], at: int, bit: int) -> list[bytes]:
    """Any bit past the length, which only says where the record ends."""
    record = bytearray(sealed[at])
    bit = 16 + bit % (8 * len(record) - 16)
    record[bit // 8] ^= 1 << bit % 8
    return [*sealed[:at], bytes(record), *sealed[at + 1 :]]


def drop(sealed: list[bytes], at: int, _: int) -> list[bytes]:
    return sealed[:at] + sealed[at + 1 :]


def double(sealed: list[bytes], at: int, _: int) -> list[bytes]:
    return sealed[: at + 1] + sealed[at:]


def repeat_later(sealed: list[bytes], at: int, by: int) -> list[bytes]:
    later = at + 1 + by % (len(sealed) - at)
    return [*sealed[:later], sealed[at], *sealed[later:]]


def swap(sealed: list[bytes], at: int, _: int) -> list[bytes]:
    return [*sealed[:at], sealed[at + 1], sealed[at], *sealed[at + 2 :]]


def cut(sealed: list[bytes], at: int, size: int) -> list[bytes]:
    """Fewer bytes under a length that fits them."""
    body = sealed[at][2:]
    body = body[: size % len(body)]
    return [*sealed[:at], len(body).to_bytes(2, "big") + body, *sealed[at + 1 :]]


def splice(sealed: list[bytes], at: int, size: int) -> list[bytes]:
    """The head of one record and the end of another."""
    body, other = sealed[at][2:], sealed[at + 1][2:]
    size %= min(len(body), len(other))
    body = body[:size] + other[size:]
    if body == sealed[at][2:]:
        return drop(sealed, at, 0)
    return [*sealed[:at], len(body).to_bytes(2, "big") + body, *sealed[at + 1 :]]


REASONS: dict[Tamper, set[str]] = {
    flip: {"gap", "replay", "tag"},
    drop: {"gap"},
    double: {"replay"},
    repeat_later: {"replay"},
    swap: {"gap"},
    cut: {"truncated", "tag"},
    splice: {"gap", "truncated", "tag"},
}


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(list(REASONS)),
    st.integers(0, len(TEXTS) - 2),
    st.integers(0, 1 << 16),
    st.booleans(),
    st.integers(1, 7000),
)
def test_tampering_delivers_a_prefix_and_ends_the_channel(
    tamper: Tamper, at: int, how: int, upward: bool, chunk: int
) -> None:
    left, right = connected()
    sender, receiver = (left, right) if upward else (right, left)
    wire = b"".join(tamper(talk(sender), at, how))
    events: list[Event] = []
    for start in range(0, len(wire), chunk):
        events += receiver.receive(wire[start : start + chunk])
    assert reason(events) in REASONS[tamper]
    got = delivered(events)
    assert got == TEXTS[: len(got)]
    assert len(got) >= at
    assert receiver.state == ENDED
    assert receiver.receive(wire) == []


def test_a_record_of_another_channel_does_not_open() -> None:
    one, _ = connected()
    _, two = connected()
    assert reason(two.receive(talk(one)[0])) in {"gap", "tag"}


def test_a_record_sent_back_does_not_open() -> None:
    """Each direction has its own key: what a side has sent is not taken from it."""
    left, right = connected()
    right.streams.ping(1)
    left.receive(drain(right))  # now both sides' next number is 1
    assert reason(left.receive(talk(left)[0])) == "tag"


def test_a_length_that_was_changed_stalls_or_ends_the_channel() -> None:
    left, right = connected()
    wire = bytearray(b"".join(talk(left)))
    wire[1] ^= 1
    assert reason(right.receive(bytes(wire))) in {"tag", "truncated"}


@settings(max_examples=100, deadline=None)
@given(st.binary(min_size=1, max_size=300), st.sampled_from(["greeting", "proving", "open"]), st.booleans())
def test_garbage_is_answered_by_an_end_or_by_nothing(garbage: bytes, state: str, at_host: bool) -> None:
    left, right = device(), host()
    if state == "proving":
        right.receive(drain(left))
        left.receive(drain(right))
    elif state == "open":
        left, right = connected()
    receiver: Channel = right if at_host else left
    events = receiver.receive(garbage)
    assert delivered(events) == []
    if events:
        reason(events)
        assert receiver.state == ENDED
    assert len(receiver._splitter._partial) <= len(garbage)


def test_memory_is_bounded_for_an_endless_record() -> None:
    _, right = connected()
    for _ in range(3000):
        right.receive(b"\x01" * 100)
        assert len(right._splitter._partial) <= 2 + 65535
    assert right.state == ENDED
