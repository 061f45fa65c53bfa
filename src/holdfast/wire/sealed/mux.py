"""Numbered streams in one channel. Plaintexts of records in and out; what comes out is decided when it is asked for,
so that a keystroke written last still goes before bulk that waits.

The device opens odd numbers, the host even ones, each in rising order.
"""

from __future__ import annotations

from ...model.errors import HoldfastError
from ...model.limits import SEALED_BULK_SHARE, SEALED_RECORD_BYTES, SEALED_STREAMS_MAX, SEALED_TURN_BYTES
from . import frames
from .errors import SealedError
from .events import Closed, Credited, Data, Ended, Event, Opened, Pong, Reset
from .stream import Stream

_LAST_NUMBER = (1 << 32) - 1


class Mux:
    """After `receive` has raised, the channel is over: nothing of that record or a later one is delivered."""

    def __init__(self, device: bool) -> None:
        self._parity = 1 if device else 0
        self._next = 1 if device else 2
        self._peers_last = 0
        self._streams: dict[int, Stream] = {}
        # Ordered sets: what is to be sent about streams, and whose turn it is to send bytes. Entries go with their
        # stream, so a peer that opens and resets without reading makes nothing grow.
        self._control: dict[tuple[int, int], None] = {}
        self._ready: tuple[dict[int, None], dict[int, None]] = ({}, {})
        self._ping: int | None = None
        self._pong: int | None = None

    # ---------------------------------------------------------------------------------------- the link's calls

    def open(self, kind: int, purpose: bytes = b"") -> int:
        """A new stream's number. What it is for is the link's own business."""
        payload = frames.open_payload(kind, purpose)
        frames.parse_open(payload)
        if self._next > _LAST_NUMBER:
            raise SealedError("exhausted")
        if self._open_count(self._parity) >= SEALED_STREAMS_MAX:
            raise HoldfastError("quota", f"{SEALED_STREAMS_MAX} streams are open", "close one first")
        number, self._next = self._next, self._next + 2
        self._streams[number] = Stream(kind, purpose)
        self._control[frames.OPEN, number] = None
        return number

    def room(self, number: int) -> int:
        """How many bytes `write` takes now; 0 for a stream that is over."""
        stream = self._live(number)
        return stream.room if stream else 0

    def write(self, number: int, data: bytes) -> int:
        """Queue what there is room for; how many bytes that was."""
        stream = self._live(number)
        if stream is None or stream.closing:
            raise LookupError(f"stream {number} is closed")
        count = min(len(data), stream.room)
        stream.queue += data[:count] if count < len(data) else data
        self._schedule(number, stream)
        return count

    def consumed(self, number: int, size: int) -> None:
        """The link has passed on so many bytes of a stream; the other side may send as many more."""
        stream = self._live(number)
        if stream is not None:
            stream.consumed(size)
            self._settle(number, stream)

    def close(self, number: int) -> None:
        """Send no more on a stream, after what is queued; the other side may go on sending."""
        stream = self._live(number)
        if stream is not None:
            stream.closing = True
            self._schedule(number, stream)

    def reset(self, number: int) -> None:
        """Give a stream up in both directions; what is queued is dropped."""
        stream = self._live(number)
        if stream is not None:
            stream.queue.clear()
            self._ready[stream.kind].pop(number, None)
            self._control[frames.RESET, number] = None

    def ping(self, value: int) -> None:
        self._ping = value

    # ------------------------------------------------------------------------------------------------- sending

    def next_payload(self, limit: int = SEALED_RECORD_BYTES) -> bytes:
        """The next record's plaintext, as much as fits and waits; empty where nothing waits."""
        parts: list[bytes] = []
        room = self._put_control(parts, limit)
        interactive, bulk = self._ready
        kept = limit // SEALED_BULK_SHARE if bulk else 0
        room = kept + self._put_data(parts, interactive, room - kept)
        self._put_data(parts, bulk, room)
        return b"".join(parts)

    def _put_control(self, parts: list[bytes], room: int) -> int:
        """Everything but bytes: a few small frames, and first, because streams wait for them."""
        for kind, value in ((frames.PING, self._ping), (frames.PONG, self._pong)):
            if value is not None:
                parts.append(frames.frame(kind, 0, frames.u64(value)))
                room -= len(parts[-1])
        self._ping = self._pong = None
        while self._control:
            kind, number = key = next(iter(self._control))
            made = self._control_frame(kind, number)
            if len(made) > room:
                break
            parts.append(made)
            room -= len(made)
            del self._control[key]
            stream = self._streams[number]
            if kind == frames.CREDIT:
                stream.settle()
            if kind == frames.RESET or stream.over:
                self._forget(number)
        return room

    def _control_frame(self, kind: int, number: int) -> bytes:
        stream = self._streams[number]
        if kind == frames.OPEN:
            return frames.frame(kind, number, frames.open_payload(stream.kind, stream.purpose))
        if kind == frames.CREDIT:
            return frames.frame(kind, number, frames.u32(stream.owed))
        return frames.frame(kind, number)

    def _put_data(self, parts: list[bytes], ready: dict[int, None], room: int) -> int:
        """Bytes of the streams of one class, in turns; a stream that was served goes to the end of the line."""
        while ready and room > frames.HEAD_BYTES:
            number = next(iter(ready))
            stream = self._streams[number]
            if (frames.OPEN, number) in self._control:
                break  # its OPEN did not fit, and nothing else does
            if stream.queue:
                turn = max(SEALED_TURN_BYTES, room // len(ready))
                data = stream.take(min(room - frames.HEAD_BYTES, turn))
                parts += (frames.head(frames.DATA, number, len(data)), data)
            else:
                data = b""
                stream.sent_close = True
                parts.append(frames.frame(frames.CLOSE, number))
            room -= frames.HEAD_BYTES + len(data)
            del ready[number]
            self._schedule(number, stream)
            if stream.over:
                self._forget(number)
        return room

    # ----------------------------------------------------------------------------------------------- receiving

    def receive(self, plaintext: bytes) -> list[Event]:
        """What the frames of a record say; nothing at all where one of them is wrong."""
        events: list[Event] = []
        for kind, number, payload in frames.parse(plaintext):
            if kind == frames.OPEN:
                events.append(self._opened(number, payload))
            elif number:
                events += self._of_stream(kind, number, payload)
            elif kind == frames.PING:
                self._pong = frames.parse_u64(payload)
            elif kind == frames.PONG:
                events.append(Pong(frames.parse_u64(payload)))
            else:
                code, message = frames.parse_end(payload)
                events.append(Ended(HoldfastError(code, message) if code else None, by_peer=True))
                break  # the last word: what comes behind it is not looked at
        return events

    def _opened(self, number: int, payload: bytes) -> Event:
        if number % 2 == self._parity or number <= self._peers_last:
            raise SealedError("stream", f"{number} cannot be opened")
        if self._open_count(1 - self._parity) >= SEALED_STREAMS_MAX:
            raise SealedError("streams")
        kind, purpose = frames.parse_open(payload)
        self._peers_last = number
        self._streams[number] = Stream(kind, purpose)
        return Opened(number, kind, purpose)

    def _of_stream(self, kind: int, number: int, payload: bytes) -> list[Event]:
        stream = self._live(number)
        known = self._next if number % 2 == self._parity else self._peers_last + 1
        if number >= known or (frames.OPEN, number) in self._control:
            raise SealedError("stream", f"{number} was never opened")
        if stream is None:
            return []  # sent before the other side knew that the stream is over
        event: Event
        if kind == frames.DATA:
            stream.received(len(payload))
            return [Data(number, payload)]
        if kind == frames.CREDIT:
            stream.credited(frames.parse_u32(payload))
            event = Credited(number)
        elif kind == frames.CLOSE:
            stream.closed()
            self._settle(number, stream)
            event = Closed(number)
        else:
            self._forget(number)
            return [Reset(number)]
        if stream.over:
            self._forget(number)
        return [event]

    # ----------------------------------------------------------------------------------------------- the table

    def _live(self, number: int) -> Stream | None:
        """A stream that neither side has given up."""
        return None if (frames.RESET, number) in self._control else self._streams.get(number)

    def _open_count(self, parity: int) -> int:
        return sum(number % 2 == parity for number in self._streams)

    def _schedule(self, number: int, stream: Stream) -> None:
        if stream.ready:
            self._ready[stream.kind][number] = None

    def _settle(self, number: int, stream: Stream) -> None:
        if stream.owes:
            self._control[frames.CREDIT, number] = None

    def _forget(self, number: int) -> None:
        stream = self._streams.pop(number)
        self._ready[stream.kind].pop(number, None)
        for kind in (frames.OPEN, frames.CREDIT, frames.RESET):
            self._control.pop((kind, number), None)
