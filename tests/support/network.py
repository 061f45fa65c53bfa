"""A network between a browser and the port that it talks to: it can stall, and lose a connection without a word."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

_PIECE_BYTES = 64 << 10


class Network:
    """Passes bytes on while it `flows`. A connection that was `lost` is open on both sides, and nothing comes through."""

    def __init__(self) -> None:
        self._to = ("", 0)
        self._loop = asyncio.new_event_loop()
        self._flows, self._never = asyncio.Event(), asyncio.Event()
        self._lost = 0  # connections up to this number are
        self._made = 0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    # -- from the test's thread

    def lead_to(self, url: str) -> None:
        """From now on it ends there, and flows."""
        address = urlsplit(url)
        self._to = (str(address.hostname), int(address.port or 0))
        self.flow()

    @property
    def flag(self) -> str:
        """For Chromium: the same names and ports in every header, another way to get there."""
        return f"--host-resolver-rules=MAP * 127.0.0.1:{self.port}"

    def stall(self) -> None:
        self._call(self._flows.clear)

    def flow(self) -> None:
        self._call(self._flows.set)

    def lose(self) -> None:
        """Every connection that there is."""
        self._call(lambda: setattr(self, "_lost", self._made))

    def give_up(self) -> None:
        """On the lost ones, after all: both sides hear of it, as they would in a quarter of an hour."""

        def close() -> None:
            self._never.set()
            self._never = asyncio.Event()

        self._call(close)

    def _call(self, act: object) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (act(), done.set()))  # type: ignore[operator, func-returns-value]
        assert done.wait(30)

    def begin(self) -> None:
        self._flows.set()
        self._thread.start()
        served = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self._server = served.result(30)
        self.port = self._server.sockets[0].getsockname()[1]

    def end(self) -> None:
        async def stop() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            for _ in range(3):  # what was closed says so in the rounds to come
                await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    # -- within

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._made += 1
        number = self._made
        try:
            await self._flows.wait()
            there, back = await asyncio.open_connection(*self._to)
        except OSError:  # refused: nobody listens there now
            return
        else:
            await self._both(number, (reader, back), (there, writer))
        finally:
            writer.transport.abort()

    async def _both(self, number: int, *ways: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        tasks = [asyncio.ensure_future(self._pass(number, *way)) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for _, writer in ways:
                writer.transport.abort()

    async def _pass(self, number: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(_PIECE_BYTES):
                await self._flows.wait()
                if number <= self._lost:
                    await self._never.wait()  # neither side hears of it
                    return
                sink.write(data)
                await sink.drain()
        if number <= self._lost:
            await self._never.wait()


@contextlib.contextmanager
def network() -> Iterator[Network]:
    made = Network()
    made.begin()
    try:
        yield made
    finally:
        made.end()
