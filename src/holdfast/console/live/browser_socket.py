"""What both sockets share: sending in order, signs of life both ways, and an end with a reason."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Coroutine
from typing import Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from ...model.errors import HoldfastError
from ...model.limits import BEAT_S, SILENT_S
from . import messages_in

# How a socket is closed; the page does something else for each.
DONE, AGAIN, LOGGED_OUT, NOT_ALLOWED, NOT_FOUND, BAD, FULL = 1000, 4000, 4401, 4403, 4404, 1008, 1013
_CLOSE_S = 5.0  # to say why; a browser that does not read any more is left without
_GONE = (WebSocketDisconnect, RuntimeError, OSError)  # what sending to a browser raises that went
_CODES = {"not_found": NOT_FOUND, "not_allowed": NOT_ALLOWED, "invalid": BAD, "usage": BAD, "conflict": DONE}


class SocketClosed(Exception):
    """The socket is to be closed, for this reason."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


class BrowserSocket:
    """One browser's socket."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket, self._turn = socket, asyncio.Lock()

    async def tell(self, kind: str, **facts: object) -> None:
        async with self._turn:
            await self._socket.send_text(_text(kind, facts))

    async def show(self, after: int, data: bytes, first: tuple[str, dict[str, object]] | None = None) -> None:
        """Bytes, with the offset that stands after them; `first` is said in the same breath."""
        async with self._turn:
            if first is not None:
                await self._socket.send_text(_text(*first))
            await self._socket.send_bytes(after.to_bytes(8, "big") + data)

    async def listen(self) -> messages_in.Message:
        """The next message; whoever is silent for too long is gone."""
        try:
            async with asyncio.timeout(SILENT_S):
                message = await self._socket.receive()
        except TimeoutError:
            raise SocketClosed(AGAIN, "nothing was heard for too long") from None
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code") or 1005)
        try:
            return messages_in.parse(message.get("text"))
        except msgspec.MsgspecError as e:
            raise SocketClosed(BAD, f"not a message: {e}") from None

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self.tell("ping")

    async def run(self, *works: Coroutine[Any, Any, None]) -> None:
        """All at once until the first ends, whatever its reason; then close."""
        tasks = [asyncio.ensure_future(work) for work in (*works, self.beat())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._end(next((task.exception() for task in tasks if task in done), None))

    async def refuse(self, error: HoldfastError) -> None:
        """What is wrong, and the end."""
        with contextlib.suppress(TimeoutError, *_GONE):
            async with asyncio.timeout(_CLOSE_S):
                await self.tell("refused", error=error.as_dict())
        await self.close(_CODES.get(error.code, AGAIN), error.message)

    async def _end(self, error: BaseException | None) -> None:
        if isinstance(error, SocketClosed):
            await self.close(error.code, error.reason)
        elif isinstance(error, HoldfastError):
            await self.refuse(error)
        elif error is not None and not isinstance(error, _GONE):
            await self.close(AGAIN, "something failed here")
            raise error

    async def close(self, code: int, reason: str) -> None:
        with contextlib.suppress(TimeoutError, *_GONE):  # it went first, or does not read
            async with asyncio.timeout(_CLOSE_S):
                await self._socket.close(code, reason.encode()[:120].decode("utf-8", "ignore"))


def _text(kind: str, facts: dict[str, object]) -> str:
    return json.dumps({"kind": kind, **facts}, separators=(",", ":"))
