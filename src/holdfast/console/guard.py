"""What every request passes before anything looks at it: exact Host, exact Origin, and a token that is valid now.

A browser on this machine reaches this port too, for whatever page it happens to show. So no name but the port's own
is answered (a foreign name that was pointed here is another site), and no page but the port's own may ask. A token is
in the Authorization header or it is not there; a URL is written down in too many places.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ..client.aio import AsyncHost
from ..model import web
from ..model.errors import HoldfastError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/healthz"})  # paths that tell nothing, and so ask for nobody
OPERATOR = "holdfast.operator"  # where the caller stands in the scope
_WATCH_AFTER_S = 1.0  # a request that takes longer is a stream, and ends when its token does


class Guard:
    """ASGI middleware around everything this port serves."""

    def __init__(self, app: App, host: AsyncHost, address: tuple[str, int]) -> None:
        self._app, self._host = app, host
        self._names, self._origins = web.names(*address), web.origins(*address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        wrong = self._wrong(headers)
        if wrong is not None:
            await _refuse(scope, send, *wrong)
            return
        if scope["path"] in OPEN and scope["type"] == "http":
            await self._app(scope, receive, send)
            return
        hash = _hash(headers)
        try:
            who = await self._host.call("token_check", hash=hash) if hash else None
        except HoldfastError as e:
            if e.code != "not_allowed":
                await _refuse(scope, send, 503, e)
                return
            who = None
        if who is None or hash is None:
            error = HoldfastError("not_allowed", "a valid token is needed", "hold mcp token AGENT makes one")
            await _refuse(scope, send, 401, error)
            return
        scope[OPERATOR] = who
        await self._while_valid(hash, self._app(scope, receive, send))

    def _wrong(self, headers: dict[bytes, list[bytes]]) -> tuple[int, HoldfastError] | None:
        names, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(names) != 1 or names[0].decode("latin-1").lower() not in self._names:
            return 421, HoldfastError("not_allowed", "this port is not called that", "use the address it was given")
        if origins and (len(origins) != 1 or origins[0].decode("latin-1") not in self._origins):
            return 403, HoldfastError("not_allowed", "pages of another site may not ask here", "")
        return None

    async def _while_valid(self, hash: str, serving: Awaitable[None]) -> None:
        """Serve a request, and cut it off the moment its token ends."""
        task = asyncio.ensure_future(serving)
        try:
            if not (await asyncio.wait({task}, timeout=_WATCH_AFTER_S))[0]:
                watch = asyncio.ensure_future(self._ended(hash))
                try:
                    await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    watch.cancel()
            if task.done():
                task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _ended(self, hash: str) -> None:
        while True:
            try:
                await self._host.call("token_check", hash=hash, ended=True)
                return
            except HoldfastError as e:
                if e.code == "not_allowed":
                    return
                await asyncio.sleep(_WATCH_AFTER_S)  # the host is away: when it is back, it knows


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    found: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


def _hash(headers: dict[bytes, list[bytes]]) -> str | None:
    given = headers.get(b"authorization", [])
    token = web.bearer(given[0].decode("latin-1")) if len(given) == 1 else None
    return None if token is None else hashlib.sha256(token.encode()).hexdigest()


async def _refuse(scope: Scope, send: Send, status: int, error: HoldfastError) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    body = json.dumps({"error": error.as_dict()}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()),
               (b"cache-control", b"no-store"), (b"connection", b"close")]  # fmt: skip
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="holdfast"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
