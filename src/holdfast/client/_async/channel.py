"""A direct line to a session's keeper: its output by offset, and typing. The one source of channel_sync.py."""

from __future__ import annotations

from ...model.errors import HoldfastError, from_dict
from ...wire import keeper_frames
from .._io.async_socket import AsyncKeeperChannel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    from ..types import Chunk

    Json = dict[str, Any]

_STREAMS = {0: "terminal", 1: "stdout", 2: "stderr"}


class AsyncChannel:
    """A stream of frames with a keeper (or with an ended session's log)."""

    def __init__(self, line: AsyncKeeperChannel) -> None:
        self._line, self._decoder = line, keeper_frames.Decoder()
        self._frames: list[tuple[int, bytes]] = []
        self._seq = 0
        self.complete = False  # the asked range was delivered to its end

    async def welcome(self) -> Json:
        while True:
            kind, payload = await self._next()
            if kind == keeper_frames.WELCOME:
                return keeper_frames.parse_json(payload)
            if kind == keeper_frames.END:
                raise ConnectionResetError("the session's keeper closed the line")

    async def _next(self) -> tuple[int, bytes]:
        while not self._frames:
            data = await self._line.receive()
            if not data:
                return keeper_frames.END, b""
            self._frames = self._decoder.feed(data)
        return self._frames.pop(0)

    async def read(self, start: int, end: int | None) -> AsyncIterator[Chunk]:
        from ..types import Chunk

        await self._line.send(keeper_frames.read(start, keeper_frames.FOREVER if end is None else end))
        while True:
            kind, payload = await self._next()
            if kind == keeper_frames.OUTPUT:
                offset, stream, data = keeper_frames.parse_output(payload)
                yield Chunk(offset, data, _STREAMS.get(stream, "terminal"))
            elif kind == keeper_frames.GAP:
                a, b = keeper_frames.parse_pair(payload)
                yield Chunk(a, b"", gap=(a, b))
            elif kind == keeper_frames.END:
                self.complete = bool(payload)
                return

    async def send(self, data: bytes, epoch: int = 0) -> int:
        """Type; returns the epoch under which it was accepted."""
        self._seq += 1
        await self._line.send(keeper_frames.input_frame(self._seq, epoch, data))
        while True:
            kind, payload = await self._next()
            if kind == keeper_frames.ACK:
                return keeper_frames.parse_ack(payload)[1]
            if kind == keeper_frames.RESULT:
                error = keeper_frames.parse_json(payload).get("error")
                if error is None:
                    continue  # the answer to `seen` below
                if "controls" in error:  # the caller is told now: what it sends next, it sends knowing that
                    seen = {"op": "seen", "epoch": error["controls"]["epoch"]}
                    await self._line.send(keeper_frames.message(keeper_frames.ACT, seen))
                raise from_dict(error)
            if kind == keeper_frames.END:
                raise HoldfastError("conflict", "the session has ended", "hold restart")

    def close(self) -> None:
        if self._seq:  # gone on purpose: what it held by typing is free at once
            self._line.say(keeper_frames.message(keeper_frames.ACT, {"op": "release", "detach": True}))
        self._line.close()
