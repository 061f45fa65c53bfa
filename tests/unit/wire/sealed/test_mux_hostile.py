"""What a peer may not send: each ends the channel with its reason, and nothing of it makes memory grow."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.limits import SEALED_CREDIT_BYTES, SEALED_STREAMS_MAX, SEALED_WINDOW_BYTES
from holdfast.wire.sealed import frames
from holdfast.wire.sealed.errors import SealedError
from holdfast.wire.sealed.events import Ended
from holdfast.wire.sealed.frames import BULK, frame
from holdfast.wire.sealed.mux import Mux


def refused(mux: Mux, plaintext: bytes) -> str:
    with pytest.raises(SealedError) as e:
        mux.receive(plaintext)
    return e.value.reason


OPEN_1 = frame(frames.OPEN, 1, b"\1")


def data(number: int, size: int) -> bytes:
    return frame(frames.DATA, number, b"x" * size)


@pytest.mark.parametrize(
    ("plaintext", "why"),
    [
        (b"\x09" + bytes(6), "frame"),  # an unknown type
        (b"\xff" * 64, "frame"),
        (frame(frames.OPEN, 1, b"\2"), "frame"),  # an unknown class
        (frame(frames.OPEN, 1, b""), "frame"),
        (frame(frames.OPEN, 1, b"\1" + b"x" * 257), "frame"),
        (OPEN_1 + frame(frames.DATA, 1), "frame"),  # no bytes
        (OPEN_1 + frame(frames.CREDIT, 1, b"\0\0\1"), "frame"),
        (OPEN_1 + frame(frames.CLOSE, 1, b"x"), "frame"),
        (OPEN_1[:-1], "frame"),  # cut
        (OPEN_1 + b"\2\0\0", "frame"),
        (frame(frames.END, 0, b"UPPER\0text"), "frame"),
        (OPEN_1 + bytes(10) + b"x", "padding"),
        (frame(frames.OPEN, 0, b"\1"), "stream"),
        (frame(frames.PING, 1, bytes(8)), "stream"),
        (OPEN_1 + frame(frames.PING, 1, bytes(8)), "stream"),
        (frame(frames.DATA, 0, b"x"), "stream"),
        (frame(frames.OPEN, 2, b"\1"), "stream"),  # the host's number
        (OPEN_1 + OPEN_1, "stream"),
        (frame(frames.OPEN, 3, b"\1") + OPEN_1, "stream"),  # numbers rise
        (data(1, 1), "stream"),  # never opened
        (data(2, 1), "stream"),
        (frame(frames.RESET, 5), "stream"),
        (OPEN_1 + frame(frames.CLOSE, 1) + data(1, 1), "stream"),
        (OPEN_1 + frame(frames.CLOSE, 1) * 2, "stream"),
        (OPEN_1 + frame(frames.CREDIT, 1, frames.u32(1)), "credit"),  # for bytes that were not sent
        (OPEN_1 + frame(frames.CREDIT, 1, frames.u32(0)), "credit"),
        (OPEN_1 + data(1, 60_000) * 9, "credit"),
        (b"".join(frame(frames.OPEN, 2 * n + 1, b"\1") for n in range(SEALED_STREAMS_MAX + 1)), "streams"),
    ],
)
def test_what_a_peer_may_not_send_ends_the_channel(plaintext: bytes, why: str) -> None:
    assert refused(Mux(device=False), plaintext) == why


def test_a_peer_cannot_write_to_a_stream_it_has_not_been_told_of() -> None:
    host = Mux(device=False)
    number = host.open(BULK)
    assert refused(host, data(number, 1)) == "stream"


def test_a_peer_cannot_credit_more_than_was_sent() -> None:
    left = Mux(device=True)
    number = left.open(BULK)
    left.write(number, b"x" * 10)
    left.next_payload()
    assert refused(left, frame(frames.CREDIT, number, frames.u32(11))) == "credit"


def test_exactly_the_window_is_accepted_and_one_byte_more_is_not() -> None:
    host = Mux(device=False)
    host.receive(OPEN_1)
    for _ in range(SEALED_WINDOW_BYTES // 32768):
        host.receive(data(1, 32768))
    assert refused(host, data(1, 1)) == "credit"


def test_consumed_bytes_count_until_they_are_credited() -> None:
    host = Mux(device=False)
    host.receive(OPEN_1)
    for _ in range(SEALED_WINDOW_BYTES // 32768):
        host.receive(data(1, 32768))
    host.consumed(1, 1)
    assert refused(host, data(1, 1)) == "credit"


def test_a_link_cannot_consume_what_did_not_come() -> None:
    host = Mux(device=False)
    host.receive(OPEN_1 + data(1, 5))
    with pytest.raises(ValueError, match="6 bytes consumed, 5 received"):
        host.consumed(1, 6)


def test_an_end_is_the_last_word_and_fit_for_a_terminal() -> None:
    end = frame(frames.END, 0, frames.end_payload("not_paired", "no\x1b]0;device\x07"))
    events = Mux(device=True).receive(end + OPEN_1)
    assert len(events) == 1
    assert isinstance(events[0], Ended)
    assert events[0].by_peer
    error = events[0].error
    assert error is not None
    assert error.code == "not_paired"
    assert error.message.isprintable()


def test_an_end_without_a_code_is_no_error() -> None:
    assert Mux(device=True).receive(frame(frames.END, 0, frames.end_payload("", ""))) == [Ended(None, by_peer=True)]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_garbage_raises_nothing_else(plaintext: bytes) -> None:
    with contextlib.suppress(SealedError):
        Mux(device=False).receive(plaintext)


def test_a_peer_that_reads_nothing_makes_nothing_grow() -> None:
    """It opens, writes, resets, and never takes what is to be sent to it."""
    host = Mux(device=False)
    for n in range(5000):
        number = 2 * n + 1
        host.receive(frame(frames.OPEN, number, b"\0") + data(number, SEALED_CREDIT_BYTES // 4) * 4)
        host.consumed(number, SEALED_CREDIT_BYTES // 4 * 4)
        host.write(number, b"x" * 100)
        host.receive(frame(frames.PING, 0, bytes(8)) + frame(frames.RESET, number))
    assert not host._streams
    assert not host._control
    assert not any(host._ready)


def test_a_peer_whose_streams_are_refused_makes_nothing_grow() -> None:
    host = Mux(device=False)
    for n in range(SEALED_STREAMS_MAX):
        host.receive(frame(frames.OPEN, 2 * n + 1, b"\0"))
        host.reset(2 * n + 1)
    assert refused(host, frame(frames.OPEN, 2 * SEALED_STREAMS_MAX + 1, b"\0")) == "streams"
    assert len(host._control) == SEALED_STREAMS_MAX
