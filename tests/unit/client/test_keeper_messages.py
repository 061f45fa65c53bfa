"""A keeper's line without its IO: messages whatever the borders of the bytes, and asks that the keeper reads."""

from __future__ import annotations

import pytest

from holdfast.client import keeper_messages
from holdfast.model.limits import FRAME_BYTES_MAX
from holdfast.wire import keeper_frames

SENT = b"".join(
    [
        keeper_frames.message(keeper_frames.WELCOME, {"v": 1}),
        keeper_frames.output_head(7, 2, 3) + b"abc",
        keeper_frames.pair_frame(keeper_frames.GAP, 10, 20),
        keeper_frames.frame(200, b"of a later version"),
        keeper_frames.pair_frame(keeper_frames.ACK, 5, 9),
        keeper_frames.message(keeper_frames.RESULT, {"id": 1, "ok": {}}),
        keeper_frames.message(keeper_frames.EVENT, {"event": "exit"}),
        keeper_frames.u64_frame(keeper_frames.END, 20),
    ]
)


def told(message: keeper_messages.Message) -> tuple[object, ...]:
    return (type(message).__name__, *(getattr(message, name) for name in sorted(message.__slots__)))


def test_messages_are_the_same_however_the_bytes_are_cut() -> None:
    whole = [told(m) for m in keeper_messages.KeeperDecoder().feed(SENT)]
    assert whole == [
        ("Output", b"abc", 7, 2),
        ("Gap", 20, 10),
        ("Typed", 9, 5),
        ("Answer", {"id": 1, "ok": {}}),
        ("Event", {"event": "exit"}),
        ("End",),
    ]
    for size in range(1, len(SENT)):
        hearing = keeper_messages.KeeperDecoder()
        pieces = [m for at in range(0, len(SENT), size) for m in hearing.feed(SENT[at : at + size])]
        output = [m for m in pieces if isinstance(m, keeper_messages.Output)]
        assert [m.offset for m in output] == [7, *(m.end for m in output[:-1])]
        assert b"".join(m.data for m in output) == b"abc"
        assert {m.stream for m in output} == {2}
        assert [told(m) for m in pieces if not isinstance(m, keeper_messages.Output)] == whole[1:]


def test_output_is_handed_on_before_its_frame_is_complete() -> None:
    hearing = keeper_messages.KeeperDecoder()
    assert [told(m) for m in hearing.feed(keeper_frames.output_head(7, 0, 1000) + b"abc")] == [("Output", b"abc", 7, 0)]
    assert [told(m) for m in hearing.feed(b"def")] == [("Output", b"def", 10, 0)]


@pytest.mark.parametrize("length", [0, 9, FRAME_BYTES_MAX + 1])
def test_an_output_frame_that_cannot_be_is_refused(length: int) -> None:
    with pytest.raises(keeper_frames.ProtocolError):
        list(
            keeper_messages.KeeperDecoder().feed(length.to_bytes(4, "big") + bytes([keeper_frames.OUTPUT]) + bytes(20))
        )


def test_output_says_where_the_next_byte_stands() -> None:
    assert keeper_messages.Output(7, 0, b"abc").end == 10


def test_what_is_asked_is_what_a_keeper_reads() -> None:
    asked = (
        keeper_messages.read(7)
        + keeper_messages.type_(3, b"ls\r")
        + keeper_messages.resize(80, 24)
        + keeper_messages.act(2, "take", force=True)
    )
    (read, at), (typed, line), (resized, size), (acted, facts) = keeper_frames.Decoder().feed(asked)
    assert (read, keeper_frames.parse_pair(at)) == (keeper_frames.READ, (7, keeper_frames.FOREVER))
    assert (typed, keeper_frames.parse_input(line)) == (keeper_frames.INPUT, (3, 0, b"ls\r"))
    assert (resized, keeper_frames.parse_size(size)) == (keeper_frames.RESIZE, (80, 24))
    assert (acted, keeper_frames.parse_json(facts)) == (keeper_frames.ACT, {"id": 2, "op": "take", "force": True})
