"""The host's line to one keeper: requests with answers, watches, events. The keeper goes on without it."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from ...model.errors import HoldfastError, from_dict
from ...model.limits import KEEPER_ANSWER_S
from ...wire import keeper_frames
from ...wire.socket_address import reachable

Json = dict[str, Any]

_REWATCH_S = 0.02  # a screen that follows from afar may hear of new output this much later
_RECV_BYTES = 64 << 10  # answers and events; output never comes this way. A larger buffer is mapped at every read


def dial(path: str, wait_s: float = 0.0) -> socket.socket:
    """A connected socket to a keeper's address, whatever the path's length. BlockingIOError where the keeper (stopped,
    perhaps) leaves those before us waiting for longer than `wait_s`."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    address, folder = reachable(path)
    try:
        sock.setblocking(wait_s > 0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(wait_s))
        sock.connect(address)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(0.0))
        sock.setblocking(True)  # as whoever gets it expects
    except OSError:
        sock.close()
        raise
    finally:
        if folder >= 0:
            os.close(folder)
    return sock


async def dial_soon(path: str) -> socket.socket:
    """The same, waiting in the keeper's queue for a while: on a thread, because a whole host does not wait along."""
    try:
        return dial(path)
    except BlockingIOError:
        return await asyncio.to_thread(dial, path, KEEPER_ANSWER_S)


def _timeval(seconds: float) -> bytes:
    return struct.pack("ll", int(seconds), int(seconds % 1 * 1e6))


class KeeperLink:
    """One host channel. After `begin`, `on_event` hears every EVENT and `on_lost` once that the line is closed."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._sock: socket.socket | None = sock
        self._unsent = bytearray()
        self._decoder = keeper_frames.Decoder()
        self._on_event: Callable[[Json], None] | None = None
        self._on_lost: Callable[[], None] | None = None
        self.on_status: Callable[[Json], None] | None = None  # hears how things stand in the order in which it is told
        self._early: list[Json] = []
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._growth: list[tuple[int, asyncio.Future[Any]]] = []
        self._next = 0
        self._watching = -1
        self._later: asyncio.TimerHandle | None = None
        self.end = 0
        self._room = asyncio.Event()
        self.welcome: asyncio.Future[Json] = self._loop.create_future()
        self.lost = False
        self.on_answering: Callable[[bool], None] | None = None  # hears that a request timed out, and every frame
        self._loop.add_reader(sock.fileno(), self._readable)

    def hail(self, hello: Json) -> None:
        self._send(keeper_frames.message(keeper_frames.HELLO, hello))

    async def welcomed(self) -> bool:
        """Whether the keeper answers in time. It may do so later: `welcome` is there to be waited for."""
        try:
            async with asyncio.timeout(KEEPER_ANSWER_S):
                await asyncio.shield(self.welcome)
        except TimeoutError:
            return False
        except BaseException:
            self.close()
            raise
        return True

    def begin(self, on_event: Callable[[Json], None], on_lost: Callable[[], None]) -> None:
        """Hear events from now on, those that came right behind the welcome first: a program can be that quick."""
        self._on_event, self._on_lost = on_event, on_lost
        for event in self._early:
            on_event(event)
        self._early.clear()
        if self.lost:
            on_lost()

    # -- the socket

    def _readable(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(_RECV_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data and self.on_answering is not None:
            self.on_answering(True)
        try:
            for kind, payload in self._decoder.feed(data):
                self._receive(kind, payload)
        except keeper_frames.ProtocolError:
            data = b""
        if not data:
            self.close()

    def close(self) -> None:
        """Let go of the line, if it is not gone already; whoever waits for something from it is told."""
        if self._sock is None:
            return
        self._loop.remove_reader(self._sock.fileno())
        self._loop.remove_writer(self._sock.fileno())
        self._sock.close()
        self._sock = None
        self._loop.call_soon(self._closed)  # after whatever closed it

    def _closed(self) -> None:
        self.lost = True
        if self._later is not None:
            self._later.cancel()
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
        if kind == keeper_frames.RESULT:
            value = keeper_frames.parse_json(payload)
            if not self.welcome.done():  # a session that could not start is refused instead of welcomed
                self.welcome.set_exception(from_dict(value["error"]))
                return
            future = self._waiting.pop(int(value.get("id") or 0), None)
            if future is not None and not future.done():
                if "error" in value:
                    future.set_exception(from_dict(value["error"]))
                else:
                    if self.on_status is not None and "attached" in value["ok"]:
                        self.on_status(value["ok"])
                    future.set_result(value["ok"])
        elif kind == keeper_frames.GREW:
            self._grew(keeper_frames.parse_u64(payload))
        elif kind == keeper_frames.EVENT:
            event = keeper_frames.parse_json(payload)
            if event.get("event") == "room":
                self._room.set()
                return
            if "end" in event:
                self.end = max(self.end, int(event["end"]))
            if self._on_event is not None:
                self._on_event(event)
            else:
                self._early.append(event)
        elif kind == keeper_frames.WELCOME and not self.welcome.done():
            self.welcome.set_result(keeper_frames.parse_json(payload))

    # -- requests

    def _send(self, data: bytes) -> None:
        if self._sock is None:
            raise HoldfastError("failed", "the session's keeper is gone", "hold status tells what is left")
        if not self._unsent:
            try:
                data = data[self._sock.send(data) :]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                return  # the reader hears of it, after what the keeper said before it went
            if not data:
                return
            self._loop.add_writer(self._sock.fileno(), self._writable)
        self._unsent += data

    def _writable(self) -> None:
        assert self._sock is not None
        try:
            del self._unsent[: self._sock.send(self._unsent)]
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._sock.fileno())

    async def act(self, op: str, **request: object) -> Json:
        """One ACT and its answer; a keeper that does not answer in time is an error, not a hang."""
        return await self._ask({"op": op, **request})

    def tell(self, op: str, **request: object) -> None:
        """An ACT whose answer nobody waits for."""
        self._send(keeper_frames.message(keeper_frames.ACT, {"id": 0, "op": op, **request}))

    async def _ask(self, request: Json, behind: bytes = b"") -> Json:
        """`behind` is sent with it, in one piece: every piece is a wake-up over there."""
        self._next += 1
        number = self._next
        if request.get("request"):  # carried out in time, or not at all: nobody would hear of it later
            request = {**request, "by": time.monotonic() + KEEPER_ANSWER_S}
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._send(keeper_frames.message(keeper_frames.ACT, {"id": number, **request}) + behind)
            async with asyncio.timeout(KEEPER_ANSWER_S):
                return await future
        except TimeoutError:
            if self._sock is not None and self.on_answering is not None:
                self.on_answering(False)
            raise HoldfastError(
                "timeout", "the session's keeper does not answer", "it may be stopped; try again"
            ) from None
        finally:
            self._waiting.pop(number, None)

    async def input(
        self,
        data: bytes,
        actor: Json,
        hold: str | None = None,
        prompt: Json | None = None,
        watch: int = -1,
        **about: object,
    ) -> Json:
        """Type for an operator; `about` says what it is (send, exec, answer) and why.

        With `prompt` only if the shell still is where that says (`typed` is 0 if not). With `watch` the next wait for
        the log to grow past it is announced along with it. While the program does not take what was typed before, wait
        for room, for a while.
        """
        request: Json = {"op": "input", "data": base64.b64encode(data).decode(), "as": actor, "hold": hold, **about}
        if prompt is not None:
            request.update(op="input_at_prompt", prompt=prompt)
        request = {key: value for key, value in request.items() if value is not None}
        behind = b""
        if watch >= 0 and not 0 <= self._watching <= watch:
            self._watching = watch
            behind = keeper_frames.u64_frame(keeper_frames.WATCH, watch)
        while True:
            self._room.clear()
            try:
                return await self._ask(request, behind)
            except HoldfastError as e:
                if e.code != "busy":
                    raise
                behind = b""
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
        self.watch(past, future)
        try:
            return await future
        finally:
            self.unwatch(past, future)

    def watch(self, past: int, future: asyncio.Future[Any]) -> None:
        """Have a future set when the log's end is past `past`, or the keeper gone."""
        self._growth.append((past, future))
        self._rewatch()

    def unwatch(self, past: int, future: asyncio.Future[Any]) -> None:
        if (past, future) in self._growth:
            self._growth.remove((past, future))

    def _rewatch(self) -> None:
        """One watch at the keeper serves every waiter: the nearest offset."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if not self._growth or self._sock is None:
            return
        nearest = min(past for past, _ in self._growth)
        if self._watching < 0 or nearest < self._watching:
            self._watching = nearest
            self._send(keeper_frames.u64_frame(keeper_frames.WATCH, nearest))

    def _grew(self, end: int) -> None:
        self.end = max(self.end, end)
        self._watching = -1
        ready = [e for e in self._growth if e[0] < end]
        self._growth = [e for e in self._growth if e[0] >= end]
        for _, future in ready:
            if not future.done():
                future.set_result(end)
        # Whoever was just told usually asks for more at once, and that question serves the others too.
        if self._growth and self._later is None:
            self._later = self._loop.call_later(_REWATCH_S, self._rewatch)
