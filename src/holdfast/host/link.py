"""The host's line to one keeper: requests with answers, watches, events. The keeper goes on without it."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Callable
from typing import Any

from ..model.errors import HoldfastError, from_dict
from ..model.limits import KEEPER_ANSWER_S
from ..wire import frames
from ..wire.sockets import reachable

Json = dict[str, Any]


def dial(path: str) -> socket.socket:
    """A connected socket to a keeper's address, whatever the path's length."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    address, folder = reachable(path)
    try:
        sock.connect(address)
    except OSError:
        sock.close()
        raise
    finally:
        if folder >= 0:
            import os

            os.close(folder)
    return sock


class KeeperLink(asyncio.Protocol):
    """One host channel. After `begin`, `on_event` hears every EVENT and `on_lost` once that the line is closed."""

    def __init__(self) -> None:
        self._decoder = frames.Decoder()
        self._on_event: Callable[[Json], None] | None = None
        self._on_lost: Callable[[], None] | None = None
        self._early: list[Json] = []
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._growth: list[tuple[int, asyncio.Future[int]]] = []
        self._next = 0
        self._transport: asyncio.Transport | None = None
        self._watching = -1
        self.end = 0
        self._room = asyncio.Event()
        self.welcome: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.lost = False

    @classmethod
    async def open(cls, sock: socket.socket, hello: Json) -> KeeperLink:
        loop = asyncio.get_running_loop()
        sock.setblocking(False)
        _, link = await loop.create_connection(cls, sock=sock)
        link._send(frames.message(frames.HELLO, hello))
        try:
            await asyncio.wait_for(asyncio.shield(link.welcome), KEEPER_ANSWER_S)
        except TimeoutError:
            link.close()
            raise HoldfastError(
                "timeout", "the keeper does not answer", "see whether it is stopped: hold doctor"
            ) from None
        except BaseException:
            link.close()
            raise
        return link

    def begin(self, on_event: Callable[[Json], None], on_lost: Callable[[], None]) -> None:
        """Hear events from now on, those that came right behind the welcome first: a program can be that quick."""
        self._on_event, self._on_lost = on_event, on_lost
        for event in self._early:
            on_event(event)
        self._early.clear()
        if self.lost:
            on_lost()

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            for kind, payload in self._decoder.feed(data):
                self._receive(kind, payload)
        except frames.ProtocolError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        gone = HoldfastError("failed", "the session's keeper is gone", "hold status tells what is left")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(gone)
        self._waiting.clear()
        for _, growing in self._growth:
            if not growing.done():
                growing.set_result(-1)
        self._growth.clear()
        if not self.welcome.done():
            self.welcome.set_exception(gone)
            self.welcome.exception()  # read here: nobody may be waiting
        elif self._on_lost is not None:
            self._on_lost()

    def _receive(self, kind: int, payload: bytes) -> None:
        if kind == frames.RESULT:
            value = frames.parse_json(payload)
            if not self.welcome.done():  # a session that could not start is refused instead of welcomed
                self.welcome.set_exception(from_dict(value["error"]))
                return
            future = self._waiting.pop(int(value.get("id") or 0), None)
            if future is not None and not future.done():
                if "error" in value:
                    future.set_exception(from_dict(value["error"]))
                else:
                    future.set_result(value["ok"])
        elif kind == frames.GREW:
            self._grew(frames.parse_u64(payload))
        elif kind == frames.EVENT:
            event = frames.parse_json(payload)
            if event.get("event") == "room":
                self._room.set()
                return
            if "end" in event:
                self.end = max(self.end, int(event["end"]))
            if self._on_event is not None:
                self._on_event(event)
            else:
                self._early.append(event)
        elif kind == frames.WELCOME and not self.welcome.done():
            self.welcome.set_result(frames.parse_json(payload))

    # -- requests

    def _send(self, data: bytes) -> None:
        if self._transport is None or self.lost:
            raise HoldfastError("failed", "the session's keeper is gone", "hold status tells what is left")
        self._transport.write(data)

    async def act(self, op: str, **request: object) -> Json:
        """One ACT and its answer; a keeper that does not answer in time is an error, not a hang."""
        self._next += 1
        number = self._next
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        self._send(frames.message(frames.ACT, {"id": number, "op": op, **request}))
        try:
            return await asyncio.wait_for(future, KEEPER_ANSWER_S)
        except TimeoutError:
            raise HoldfastError(
                "timeout", "the session's keeper does not answer", "it may be stopped; try again"
            ) from None
        finally:
            self._waiting.pop(number, None)

    async def input(self, data: bytes, actor: Json, hold: str | None = None, **about: object) -> Json:
        """Type for an operator; `about` says what it is (send, exec, answer) and why.

        While the program does not take what was typed before, wait for room, for a while.
        """
        known = {k: v for k, v in {"hold": hold, **about}.items() if v is not None}
        while True:
            self._room.clear()
            try:
                return await self.act("input", data=base64.b64encode(data).decode(), **{"as": actor}, **known)
            except HoldfastError as e:
                if e.code != "busy":
                    raise
                try:
                    await asyncio.wait_for(self._room.wait(), KEEPER_ANSWER_S)
                except TimeoutError:
                    raise e from None

    # -- growth of the log

    async def grown(self, past: int) -> int:
        """The log's end, once it is past `past`; -1 when the keeper is gone."""
        if self.lost:
            return -1
        if self.end > past:
            return self.end
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        entry = (past, future)
        self._growth.append(entry)
        self._rewatch()
        try:
            return await future
        finally:
            if entry in self._growth:
                self._growth.remove(entry)

    def _rewatch(self) -> None:
        """One watch at the keeper serves every waiter: the nearest offset."""
        if not self._growth:
            return
        nearest = min(past for past, _ in self._growth)
        if self._watching < 0 or nearest < self._watching:
            self._watching = nearest
            self._send(frames.u64_frame(frames.WATCH, nearest))

    def _grew(self, end: int) -> None:
        self.end = max(self.end, end)
        self._watching = -1
        ready = [e for e in self._growth if e[0] < end]
        self._growth = [e for e in self._growth if e[0] >= end]
        for _, future in ready:
            if not future.done():
                future.set_result(end)
        self._rewatch()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
