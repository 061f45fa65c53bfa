"""A keeper's line without its IO: messages whatever the borders of the bytes, and asks that the keeper reads."""

from __future__ import annotations

import pytest

from holdfast.client import talk
from holdfast.model.limits import FRAME_BYTES_MAX
from holdfast.wire import frames

SENT = b"".join(
    [
        frames.message(frames.WELCOME, {"v": 1}),
        frames.output_head(7, 2, 3) + b"abc",
        frames.pair_frame(frames.GAP, 10, 20),
        frames.frame(200, b"of a later version"),
        frames.pair_frame(frames.ACK, 5, 9),
        frames.message(frames.RESULT, {"id": 1, "ok": {}}),
        frames.message(frames.EVENT, {"event": "exit"}),
        frames.u64_frame(frames.END, 20),
    ]
)


def told(message: talk.Message) -> tuple[object, ...]:
    return (type(message).__name__, *(getattr(message, name) for name in sorted(message.__slots__)))


def test_messages_are_the_same_however_the_bytes_are_cut() -> None:
    whole = [told(m) for m in talk.Hearing().feed(SENT)]
    assert whole == [
        ("Output", b"abc", 7, 2),
        ("Gap", 20, 10),
        ("Typed", 9, 5),
        ("Answer", {"id": 1, "ok": {}}),
        ("Event", {"event": "exit"}),
        ("End",),
    ]
    for size in range(1, len(SENT)):
        hearing = talk.Hearing()
        pieces = [m for at in range(0, len(SENT), size) for m in hearing.feed(SENT[at : at + size])]
        output = [m for m in pieces if isinstance(m, talk.Output)]
        assert [m.offset for m in output] == [7, *(m.end for m in output[:-1])]
        assert b"".join(m.data for m in output) == b"abc"
        assert {m.stream for m in output} == {2}
        assert [told(m) for m in pieces if not isinstance(m, talk.Output)] == whole[1:]


def test_output_is_handed_on_before_its_frame_is_complete() -> None:
    hearing = talk.Hearing()
    assert [told(m) for m in hearing.feed(frames.output_head(7, 0, 1000) + b"abc")] == [("Output", b"abc", 7, 0)]
    assert [told(m) for m in hearing.feed(b"def")] == [("Output", b"def", 10, 0)]


@pytest.mark.parametrize("length", [0, 9, FRAME_BYTES_MAX + 1])
def test_an_output_frame_that_cannot_be_is_refused(length: int) -> None:
    with pytest.raises(frames.ProtocolError):
        list(talk.Hearing().feed(length.to_bytes(4, "big") + bytes([frames.OUTPUT]) + bytes(20)))


def test_output_says_where_the_next_byte_stands() -> None:
    assert talk.Output(7, 0, b"abc").end == 10


def test_what_is_asked_is_what_a_keeper_reads() -> None:
    asked = talk.read(7) + talk.type_(3, b"ls\r") + talk.resize(80, 24) + talk.act(2, "take", force=True)
    (read, at), (typed, line), (resized, size), (acted, facts) = frames.Decoder().feed(asked)
    assert (read, frames.parse_pair(at)) == (frames.READ, (7, frames.FOREVER))
    assert (typed, frames.parse_input(line)) == (frames.INPUT, (3, 0, b"ls\r"))
    assert (resized, frames.parse_size(size)) == (frames.RESIZE, (80, 24))
    assert (acted, frames.parse_json(facts)) == (frames.ACT, {"id": 2, "op": "take", "force": True})
