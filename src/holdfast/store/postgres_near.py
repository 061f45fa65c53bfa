"""PostgreSQL for a thread that waits: foreseen writes are asked and answered on the socket itself, with no event loop.

The driver opens the connection (account, settings) and is not asked again on it. Whatever is not as foreseen, and
everything else, goes through the driver and its event loop as ever; so do connections with encryption.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

import asyncpg

from ..model.errors import HoldfastError
from ..system.brief_poll import FLUSHED_S, Arrival
from .base import Quick, Transaction
from .postgres import AWAY, PostgresStore, translate
from .postgres_quick import TEXTS

T = TypeVar("T")
_ANSWER_S = 60.0  # twice as long as the server waits for a lock
_RECV_BYTES = 1 << 16
_ROW, _ERROR, _READY = b"DEZ"  # of the server's messages, what matters here
# A key that is there by now, and a clash with somebody else: the transaction says what it means.
_CHANGED_NOTHING = frozenset({"23505", "40001", "40P01"})
_EXECUTE_SYNC = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
_NULL = b"\xff\xff\xff\xff"


class _Lost(Exception):
    """Whether it was done is not known, or the connection is not what was expected."""


class Line:
    """A connection of the driver's, taken over for prepared statements, one at a time."""

    def __init__(self, connection: asyncpg.Connection[Any], transport: asyncio.Transport) -> None:
        transport.pause_reading()  # the event loop, when it runs for others, leaves what comes here alone
        self._connection = connection
        self._sock = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
        self._sock.settimeout(_ANSWER_S)
        self._arrival = Arrival(self._sock, FLUSHED_S)
        self._prepared: set[str] = set()
        self._more = b""  # what came behind an answer: a notice, perhaps only a part of it yet

    @classmethod
    def over(cls, connection: asyncpg.Connection[Any]) -> Line | None:
        """None where the bytes on its socket are not the protocol's."""
        transport = getattr(connection, "_transport", None)
        if not isinstance(transport, asyncio.Transport) or transport.get_extra_info("socket") is None:
            return None
        return None if transport.get_extra_info("sslcontext") is not None else cls(connection, transport)

    def done(self, name: str, text: str, args: tuple[Any, ...]) -> bool:
        """Whether the statement returned a row: then it did its work, and that is on disk."""
        new = b"" if name in self._prepared else _message(b"P", name.encode() + b"\0" + text.encode() + b"\0\0\0")
        try:
            self._sock.sendall(new + _message(b"B", _bound(name, args)) + _EXECUTE_SYNC)
            rows, code = self._answer()
        except OSError as e:
            raise _Lost(str(e)) from e
        if code is not None and code not in _CHANGED_NOTHING:
            raise _Lost(code)
        self._prepared.add(name)
        return code is None and rows > 0

    def _answer(self) -> tuple[int, str | None]:
        """How many rows came, and the code of an error."""
        rows, code, data = 0, None, self._more
        while True:
            if not self._arrival.wait_soon(_ANSWER_S):
                raise TimeoutError("the server did not answer")
            more = self._sock.recv(_RECV_BYTES)
            if not more:
                raise ConnectionResetError("the server closed the connection")
            data, at = data + more, 0
            while len(data) - at >= 5:
                end = at + 1 + int.from_bytes(data[at + 1 : at + 5], "big")
                if len(data) < end:
                    break
                if data[at] == _ROW:
                    rows += 1
                elif data[at] == _ERROR:
                    code = _code(data[at + 5 : end])
                elif data[at] == _READY:
                    self._more = data[end:]
                    return rows, code
                at = end
            data = data[at:]

    def close(self) -> None:
        self._sock.close()
        self._connection.terminate()


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


def _bound(name: str, args: tuple[Any, ...]) -> bytes:
    """The arguments of a prepared statement, as text."""
    parts = [b"\0", name.encode(), b"\0\0\0", struct.pack(">H", len(args))]
    for value in args:
        if value is None:
            parts.append(_NULL)
        else:
            text = (value if isinstance(value, str) else str(int(value))).encode()
            parts += (len(text).to_bytes(4, "big"), text)
    parts.append(b"\0\0")
    return b"".join(parts)


def _code(body: bytes) -> str:
    fields = (field for field in body.split(b"\0") if field[:1] == b"C")
    return next(fields, b"C?")[1:].decode("ascii", "replace")


class NearPostgres(PostgresStore):
    """A store for one caller at a time, whose calls are made with `run`."""

    _line: Line | None = None
    _lineless = False  # such a connection cannot be taken over

    async def quick(self, quick: Quick) -> bool:
        if self._line is not None:
            return self._done(self._line, quick)
        await _awake()
        done = await super().quick(quick)
        if done and not (self._lineless or self._pooled):
            await self._lay()
        return done

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        await _awake()
        return await super().write(transaction)

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        await _awake()
        return await super().read(transaction)

    async def close(self) -> None:
        self._drop()
        await super().close()

    def terminate(self) -> None:
        self._drop()
        super().terminate()

    def _done(self, line: Line, quick: Quick) -> bool:
        text = self._texts.get(quick.name)
        if text is None:
            text = self._texts[quick.name] = translate(TEXTS[quick.name])
        try:
            return line.done(quick.name, text, quick.args)
        except _Lost:
            self._drop()  # the transaction finds out
            return False
        except BaseException:  # Ctrl-C: the answer is still to come, and must not be taken for the next one's
            self._drop()
            raise

    async def _lay(self) -> None:
        """A connection for the calls to come. Where there is none to be had, they go without."""
        try:
            connection = await self._connect()
        except (*AWAY, asyncpg.PostgresError, HoldfastError):
            return
        self._line = None if self._pooled else Line.over(connection)
        if self._line is None:
            self._lineless = True
            connection.terminate()

    def _drop(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()


# -- a call that needs an event loop only sometimes --------------------------------------------------------------------


def run(call: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Run it as far as it goes by itself, and the rest on this loop."""
    try:
        call.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    return loop.run_until_complete(_rest(call))


@types.coroutine
def _awake() -> Generator[None, None, None]:
    """From here on there is a running loop."""
    if asyncio._get_running_loop() is None:
        yield


@types.coroutine
def _rest(call: Coroutine[Any, Any, T]) -> Generator[Any, None, T]:
    """A call that was begun, from where it waits."""
    value: T = yield from call
    return value
