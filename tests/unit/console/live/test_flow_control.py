"""What a viewer is sent, and where it goes on from."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.console.live.flow_control import FilteredStream, SendWindow
from tests.support.soak import examples

PIECES = (
    b"text ",
    b"\r\n",
    b"\x1b[31m",
    b"\x1b[",
    b"\x1b",
    b"[6n",
    b"\x1b[6n",
    b"\x1b[c",
    b"\x1b]52;c;aGVs",
    b"\x07",
    b"\x05",
    b"\x1b]10;?",
    b"\x1b\\",
    b"\x1bP$q",
    b"\xc3\xa4",
    b"\xc2",
    b"\x9b",
    b"\x1b]0;title",
    b"0;31",
    b"m",
    b"\x18",
    b"\x1bPtmux;",
)


def whole(data: bytes) -> bytes:
    return FilteredStream(0).feed(0, data)


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.lists(st.integers(0, 200), max_size=8))
@settings(max_examples=examples(300), deadline=None)
def test_who_goes_on_from_where_it_was_told_misses_nothing_and_sees_nothing_twice(
    pieces: list[bytes], cuts: list[int]
) -> None:
    data = b"".join(pieces)
    stream = FilteredStream(0)
    shown, at = b"", 0
    for cut in sorted({min(c, len(data)) for c in cuts} | {len(data)}):
        before = stream
        shown += before.feed(at, data[at:cut])
        at = cut
        resumed = FilteredStream(before.settled)
        again = resumed.feed(before.settled, data[before.settled :])
        # Overlong sequences apart, what was shown and what is shown from there on is the whole; a sequence that was
        # broken off by one that is taken away is cancelled in the middle of it instead, which shows the same.
        assert (shown + again).replace(b"\x18", b"") == whole(data).replace(b"\x18", b"")


def test_what_came_before_a_jump_is_nothing() -> None:
    stream = FilteredStream(100)
    assert stream.feed(0, b"x" * 50) == b""
    assert stream.feed(90, b"0123456789new") == b"new"
    assert stream.feed(95, b"01234new") == b"", "twice the same"
    assert stream.feed(200, b"from before a jump back") == b""
    assert stream.settled == 103
    assert stream.gap(103, 150)
    assert not stream.gap(103, 150)
    assert stream.feed(150, b"on") == b"on"
    assert stream.settled == 152


def test_a_screen_that_ends_inside_a_sequence_is_gone_on_with() -> None:
    stream = FilteredStream(0)
    assert stream.begin(b"drawn\x1b[3", 1000) == b"drawn"
    assert stream.settled == 997, "the sequence is in the output, too"
    assert stream.feed(1000, b"1mred") == b"\x1b[31mred"
    assert stream.settled == 1005


def test_an_endless_string_is_neither_kept_nor_gone_on_from() -> None:
    stream = FilteredStream(0)
    assert stream.feed(0, b"before\x1b]52;c;") == b"before"
    for n in range(100):
        assert stream.feed(stream.at, b"A" * 10_000) == b"", n
    assert stream.settled == len(b"before")
    assert stream.feed(stream.at, b"\x07after") == b"after"


def test_at_most_so_much_is_on_its_way() -> None:
    window = SendWindow(10_000)
    for n in range(10):
        assert not window.full
        window.sent((n + 1) * 1000, 1000)
    assert window.full
    window.acked(4500)
    assert not window.full
    assert not window.roomy
    window.acked(5000)
    assert window.roomy
    window.acked(99_999)
    for _ in range(40):
        window.sent(100_000, 1)
    assert window.full, "frames of a byte are bounded, too"
