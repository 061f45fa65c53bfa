"""Any interleaving of calls and any chunking of the wire delivers each stream byte-exact, in order, within its credit."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model.limits import SEALED_WINDOW_BYTES
from holdfast.wire.sealed import records
from holdfast.wire.sealed.events import Closed, Data, Ended, Event
from tests.support.sealed import connected

_TEXT = bytes(n % 251 for n in range(200_000))  # no two nearby stretches are alike


class World:
    """Two connected sides, the bytes between them, and what each stream should have delivered."""

    def __init__(self) -> None:
        self.sides = connected()
        self.pipes = bytearray(), bytearray()  # from each side, under way
        self.numbers: list[int] = []
        self.announced: set[int] = set()
        self.closed: set[tuple[int, int]] = set()  # (side that sends, stream)
        self.written: dict[tuple[int, int], bytearray] = {}
        self.got: dict[tuple[int, int], bytearray] = {}
        self.unread: dict[tuple[int, int], int] = {}
        self.ended: set[tuple[int, int]] = set()

    def open(self, side: int, which: int, size: int) -> None:
        if len(self.numbers) < 8:
            self.numbers.append(self.sides[side].streams.open(size % 2))

    def write(self, side: int, which: int, size: int) -> None:
        number = self.pick(side, which)
        if number is None or (side, number) in self.closed:
            return
        streams = self.sides[side].streams
        at = size % 251
        room, count = streams.room(number), streams.write(number, _TEXT[at : at + size])
        assert count == min(room, size)
        self.written.setdefault((side, number), bytearray()).extend(_TEXT[at : at + count])

    def close(self, side: int, which: int, size: int) -> None:
        number = self.pick(side, which)
        if number is not None:
            self.sides[side].streams.close(number)
            self.closed.add((side, number))

    def seal(self, side: int, which: int, size: int) -> None:
        self.pipes[side].extend(self.sides[side].next_bytes())

    def carry(self, side: int, which: int, size: int) -> None:
        chunk = bytes(self.pipes[side][:size])
        del self.pipes[side][:size]
        for event in self.sides[1 - side].receive(chunk):
            self.check(side, event)

    def consume(self, side: int, which: int, size: int) -> None:
        for sender, number in list(self.unread)[which:]:
            count = min(size, self.unread[sender, number])
            self.sides[1 - sender].streams.consumed(number, count)
            self.unread[sender, number] -= count

    def pick(self, side: int, which: int) -> int | None:
        """A stream that this side may write to: its own, or one whose OPEN has arrived."""
        known = [n for n in self.numbers if n % 2 != side or n in self.announced]
        return known[which % len(known)] if known else None

    def check(self, side: int, event: Event) -> None:
        assert not isinstance(event, Ended), event
        number = getattr(event, "stream", 0)
        self.announced.add(number)
        if isinstance(event, Closed):
            self.ended.add((side, number))
        if isinstance(event, Data):
            key = side, number
            assert key not in self.ended, "bytes after the end"
            self.got.setdefault(key, bytearray()).extend(event.data)
            self.unread[key] = self.unread.get(key, 0) + len(event.data)
            assert self.unread[key] <= SEALED_WINDOW_BYTES, "more than the credit"

    def finish(self) -> None:
        """Close everything, carry everything, consume everything."""
        for _ in range(1000):
            for side in (0, 1):
                for number in self.numbers:
                    self.sides[side].streams.close(number)
                self.seal(side, 0, 0)
                self.carry(side, 0, 1 << 20)
                self.consume(side, 0, 1 << 20)
            if not any(side.streams._streams for side in self.sides):
                return
        raise AssertionError("the streams never ended")


STEPS = st.lists(
    st.tuples(
        st.sampled_from([World.open, World.write, World.close, World.seal, World.carry, World.consume, World.write]),
        st.integers(0, 1),
        st.integers(0, 7),
        st.integers(1, 150_000) | st.integers(1, 40),
    ),
    min_size=10,
    max_size=100,
)


@settings(max_examples=50, deadline=None)
@given(STEPS, st.integers(1, 50))
def test_every_stream_is_delivered_byte_exact(steps: list[tuple], rekey_records: int) -> None:
    with patch.object(records, "SEALED_REKEY_RECORDS", rekey_records):
        world = World()
        for action, side, which, size in steps:
            action(world, side, which, size)
        world.finish()
    assert world.got == {key: text for key, text in world.written.items() if text}
    assert world.ended == {(side, number) for number in world.numbers for side in (0, 1)}
