"""The console's API as a browser or a script reaches it: logged in, with sockets; over a real port."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from tests.support.home import HomeForTests

Json = dict[str, Any]
PATIENCE_S = 60.0  # the machine is shared
CLOSE_S = 1.0  # a server whose output nobody reads any more cannot say goodbye; no test is about that goodbye


def link(hold: HomeForTests) -> Json:
    done = hold("web", "link", "--json")
    assert done.code == 0, done.err
    found: Json = done.json
    return found


class Browser:
    """Logged in as a page would be: the cookie, and its own Origin on everything."""

    def __init__(self, hold: HomeForTests, url: str) -> None:
        self.url = url
        self.http = httpx.Client(base_url=url, headers={"Origin": url}, timeout=PATIENCE_S)
        done = self.http.post("/api/login", json={"token": link(hold)["token"]})
        assert done.status_code == 204, done.text

    @property
    def cookie(self) -> str:
        return "; ".join(f"{c.name}={c.value}" for c in self.http.cookies.jar)

    def get(self, path: str, **query: Any) -> Any:
        done = self.http.get(path, params=query)
        assert done.status_code == 200, done.text
        return done.json()

    def post(self, path: str, status: int | None = None, **body: Any) -> Any:
        done = self.http.post(path, json=body)
        assert (done.status_code == status) if status else done.is_success, done.text
        return done.json() if done.content else None

    def delete(self, path: str, status: int = 204) -> Any:
        done = self.http.delete(path)
        assert done.status_code == status, done.text
        return done.json() if done.content else None

    @contextlib.asynccontextmanager
    async def socket(self, path: str, **headers: str) -> AsyncIterator[Socket]:
        sent = {"Cookie": self.cookie, "Origin": self.url, **headers}
        async with opened(self.url, path, sent) as line:
            yield Socket(line)

    def close(self) -> None:
        self.http.close()


def opened(url: str, path: str, headers: dict[str, str]) -> connect:
    address = urlsplit(url)
    origin = headers.pop("Origin", None)
    return connect(
        f"ws://{address.netloc}{path}",
        additional_headers=headers,
        origin=Origin(origin) if origin else None,
        compression=None,
        max_size=8 << 20,
        open_timeout=PATIENCE_S,
        close_timeout=CLOSE_S,
        ping_interval=None,
        proxy=None,
    )


class Socket:
    """What came, in order: texts by kind, and the bytes with their offset. It acknowledges unless told not to."""

    def __init__(self, line: ClientConnection) -> None:
        self.line = line
        self.texts: list[Json] = []
        self.output = b""  # since the last restore
        self.restored: bytes | None = None
        self.offset = 0
        self.acks = True
        self._restoring = False
        self._seq = 0

    async def say(self, kind: str, **facts: Any) -> None:
        with contextlib.suppress(ConnectionClosed):  # what came before the end is read all the same
            await self.line.send(json.dumps({"kind": kind, **facts}))

    async def type(self, data: bytes, seq: int | None = None) -> int:
        self._seq = self._seq + 1 if seq is None else seq
        await self.say("input", seq=self._seq, data=base64.b64encode(data).decode())
        return self._seq

    async def step(self) -> Json | None:
        """The next frame, taken in; the text if it was one."""
        async with asyncio.timeout(PATIENCE_S):
            frame = await self.line.recv()
        if isinstance(frame, str):
            text: Json = json.loads(frame)
            self.texts.append(text)
            self._restoring = self._restoring or text["kind"] == "restore"
            if text["kind"] == "controls":
                await self.say("seen", epoch=text["epoch"])
            elif text["kind"] == "ping":
                await self.say("pong")
            return text
        self.offset = int.from_bytes(frame[:8], "big")
        if self._restoring:
            self.restored, self.output, self._restoring = frame[8:], b"", False
        else:
            self.output += frame[8:]
        if self.acks:
            await self.say("ack", offset=self.offset)
        return None

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await self.step()

    async def text(self, kind: str, **facts: Any) -> Json:
        """The first text of a kind, with these facts, that came or comes; everything before it is forgotten."""

        def fits(one: Json) -> bool:
            return one["kind"] == kind and all(one.get(k) == v for k, v in facts.items())

        await self.until(lambda: any(fits(t) for t in self.texts))
        at = next(n for n, t in enumerate(self.texts) if fits(t))
        found = self.texts[at]
        del self.texts[: at + 1]
        return found

    async def sees(self, text: bytes) -> None:
        await self.until(lambda: text in (self.restored or b"") + self.output)

    async def closed(self) -> int:
        """The code that it is closed with."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self.step()
        assert self.line.close_code is not None
        return self.line.close_code
