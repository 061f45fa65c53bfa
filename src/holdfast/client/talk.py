"""A line to a session's keeper without its IO: what is asked, as bytes, and what comes, as messages.

For a surface that watches more than the line (a keyboard, a browser, another answer); `Session.open` does the IO too.
"""

from __future__ import annotations

from ..wire import frames

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
    """An input was accepted."""

    __slots__ = ("seq",)

    def __init__(self, seq: int) -> None:
        self.seq = seq


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


class Hearing:
    """Messages out of the line's bytes, whatever the borders. What this client does not know is passed over."""

    def __init__(self) -> None:
        self._decoder = frames.Decoder()

    def feed(self, data: bytes) -> Iterator[Message]:
        for kind, payload in self._decoder.feed(data):
            if kind == frames.OUTPUT:
                yield Output(*frames.parse_output(payload))
            elif kind == frames.GAP:
                yield Gap(*frames.parse_pair(payload))
            elif kind == frames.ACK:
                yield Typed(frames.parse_pair(payload)[0])
            elif kind == frames.RESULT:
                yield Answer(frames.parse_json(payload))
            elif kind == frames.EVENT:
                yield Event(frames.parse_json(payload))
            elif kind == frames.END:
                yield End()


def read(start: int) -> bytes:
    """Send the output from here on."""
    return frames.read(start)


def type_(seq: int, data: bytes) -> bytes:
    """Input, under whatever controls this line holds; free ones are taken."""
    return frames.input_frame(seq, 0, data)


def resize(cols: int, rows: int) -> bytes:
    return frames.resize(cols, rows)


def act(number: int, op: str, **facts: object) -> bytes:
    """One of the keeper's operations; its Answer carries the same number as `id`."""
    return frames.message(frames.ACT, {"id": number, "op": op, **facts})
