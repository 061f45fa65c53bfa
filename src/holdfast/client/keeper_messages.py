"""A line to a session's keeper without its IO: what is asked, as bytes, and what comes, as messages.

For a surface that watches more than the line (a keyboard, a browser, another answer); `Session.open` does the IO too.
"""

from __future__ import annotations

from ..wire import keeper_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias

    Json = dict[str, Any]
    Message: TypeAlias = "Output | Gap | Typed | Answer | Event | End"


class Output:
    """Bytes of a stream (0 terminal, 1 stdout, 2 stderr), the first of them at `offset`."""

    __slots__ = ("data", "offset", "stream")

    def __init__(self, offset: int, stream: int, data: bytes) -> None:
        self.offset, self.stream, self.data = offset, stream, data

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class Gap:
    """Output that is gone."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class Typed:
    """An input was accepted, under this epoch of the controls."""

    __slots__ = ("epoch", "seq")

    def __init__(self, seq: int, epoch: int) -> None:
        self.seq, self.epoch = seq, epoch


class Answer:
    """What became of something asked (`id`), or why an input (`seq`) was refused."""

    __slots__ = ("facts",)

    def __init__(self, facts: Json) -> None:
        self.facts = facts


class Event:
    """Something that happened: an exit, a resize, controls that changed hands, rights that ended."""

    __slots__ = ("facts",)

    def __init__(self, facts: Json) -> None:
        self.facts = facts


class End:
    """The asked range is complete, or the session has ended here."""

    __slots__ = ()


class KeeperDecoder:
    """Messages out of the line's bytes, whatever the borders. What this client does not know is passed over.

    Output is handed on as it comes, also the first half of a frame: putting frames together again would copy a flood
    several times.
    """

    def __init__(self) -> None:
        self._kept = b""  # the beginning of a frame
        self._left = 0  # of an output frame
        self._offset = self._stream = 0  # of what comes next of it

    def feed(self, data: bytes) -> Iterator[Message]:
        if self._kept:
            data, self._kept = self._kept + data, b""
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                yield Output(self._offset, self._stream, piece)
                self._offset += len(piece)
                self._left -= len(piece)
                at += len(piece)
            elif (begun := keeper_frames.begun_output(data, at)) is not None:
                self._offset, self._stream, self._left = begun
                at += keeper_frames.OUTPUT_HEAD_BYTES
            elif (whole := keeper_frames.whole(data, at)) is not None:
                kind, payload, at = whole
                message = _message(kind, payload)
                if message is not None:
                    yield message
            else:
                self._kept = data[at:]
                return


def _message(kind: int, payload: bytes) -> Message | None:
    if kind == keeper_frames.GAP:
        return Gap(*keeper_frames.parse_pair(payload))
    if kind == keeper_frames.ACK:
        return Typed(*keeper_frames.parse_ack(payload)[:2])
    if kind == keeper_frames.RESULT:
        return Answer(keeper_frames.parse_json(payload))
    if kind == keeper_frames.EVENT:
        return Event(keeper_frames.parse_json(payload))
    return End() if kind == keeper_frames.END else None


def read(start: int) -> bytes:
    """Send the output from here on."""
    return keeper_frames.read(start)


def type_(seq: int, data: bytes) -> bytes:
    """Input, under whatever controls this line holds; free ones are taken."""
    return keeper_frames.input_frame(seq, 0, data)


def resize(cols: int, rows: int) -> bytes:
    return keeper_frames.resize(cols, rows)


def act(number: int, op: str, **facts: object) -> bytes:
    """One of the keeper's operations; its Answer carries the same number as `id`."""
    return keeper_frames.message(keeper_frames.ACT, {"id": number, "op": op, **facts})
