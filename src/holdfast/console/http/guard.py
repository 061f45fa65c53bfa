"""What every request passes before anything looks at it: exact Host, exact Origin, and somebody who is let in now.

A browser on this machine reaches this port too, for whatever page it happens to show. So no name but the port's own
is answered (a foreign name that was pointed here is another site), and no page but the port's own may ask. A token is
in the Authorization header or it is not there; a URL is written down in too many places. A browser that logged in has
a cookie, which counts for the API alone and under the conditions of access.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ...model import web_address
from ...model.errors import HoldfastError
from ..live.browser_socket import LOGGED_OUT, NOT_ALLOWED
from . import headers as access
from .callers import Callers

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPERATOR = "holdfast.operator"  # where the caller stands in the scope
HOST = "holdfast.host"  # the host as that caller reaches it
_OPEN = frozenset({"/healthz", "/api/login"})  # paths that tell nothing, and so ask for nobody
_CLOSED = ("/api", "/mcp")  # these and all below; everything else is the page, which is everybody's to load
_CLOSE_S = 5.0  # to say that it is over; a browser that does not read any more is left without
_WATCH_AFTER_S = 1.0  # a request that takes longer is a stream, and ends when its caller's time does


class Guard:
    """ASGI middleware around everything this port serves."""

    def __init__(self, app: App, callers: Callers) -> None:
        self._app, self._callers = app, callers
        self._names, self._origins = web_address.names(*callers.where), web_address.origins(*callers.where)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = _headers(scope)
        wrong = self._wrong(headers)
        if wrong is not None:
            await _refuse(scope, send, *wrong)
            return
        if is_open(scope["path"], scope.get("method", "")) and scope["type"] == "http":
            await self._app(scope, receive, send)
            return
        try:
            check, hash, scope[HOST], scope[OPERATOR] = await self._identify(scope, headers)
        except HoldfastError as e:
            await _refuse(scope, send, _STATUS.get(e.code, 503), e)
            return
        await self._while_valid(check, hash, scope, receive, send)

    def _wrong(self, headers: access.Headers) -> tuple[int, HoldfastError] | None:
        names, origins = headers.get(b"host", []), headers.get(b"origin", [])
        if len(names) != 1 or names[0].decode("latin-1").lower() not in self._names:
            return 421, HoldfastError("not_allowed", "this port is not called that", "use the address it was given")
        if origins and (len(origins) != 1 or origins[0].decode("latin-1") not in self._origins):
            return 403, HoldfastError("not_allowed", "pages of another site may not ask here", "")
        return None

    async def _identify(self, scope: Scope, headers: access.Headers) -> tuple[str, str, Any, Any]:
        """How it is known who asks (the operation that checks it, and a hash), the host as they reach it, and who."""
        if b"authorization" in headers or not scope["path"].startswith("/api"):
            hash = access.bearer(headers)
            who = await self._callers.by_token(hash) if hash is not None else None
            if hash is None or who is None:
                raise HoldfastError("unknown", "a valid token is needed", "hold mcp token AGENT makes one")
            return "token_check", hash, self._callers.host_of(str(who["operator"])), who
        found = await self._callers.by_cookie(access.cookies(headers, self._callers.port))
        if found is None:
            raise HoldfastError("unknown", "this browser is not logged in", "hold web link prints a link that does it")
        refused = access.cookie_refused(scope.get("method", "GET"), headers, socket=scope["type"] == "websocket")
        if refused is not None:
            raise refused
        return "login_check", found[0], self._callers.host_for(found[1]), found[1]

    async def _while_valid(self, check: str, hash: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and cut it off the moment its caller is nobody any more."""
        socket = _Socket(send, lambda: self._callers.nobody(check, hash))
        task = asyncio.ensure_future(self._app(scope, receive, socket.send if scope["type"] == "websocket" else send))
        try:
            if not (await asyncio.wait({task}, timeout=_WATCH_AFTER_S))[0]:
                watch = asyncio.ensure_future(self._ended(check, hash))
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
                await socket.end()

    async def _ended(self, check: str, hash: str) -> None:
        while True:
            try:
                await self._callers.owner.call(check, hash=hash, ended=True)
                return
            except HoldfastError as e:
                if e.code == "not_allowed":
                    return
                await asyncio.sleep(_WATCH_AFTER_S)  # the host is away: when it is back, it knows


class _Socket:
    """A WebSocket as the application has left it. One whose caller is nobody any more is closed with the same word,
    whether that is noticed here first or by what the application asks in the caller's name."""

    def __init__(self, send: Send, nobody: Callable[[], Awaitable[bool]]) -> None:
        self._send, self._nobody, self._open = send, nobody, False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "websocket.close" and message.get("code") == NOT_ALLOWED and await self._nobody():
            message = _LOGGED_OUT
        self._open = {"websocket.accept": True, "websocket.close": False}.get(message["type"], self._open)
        await self._send(message)

    async def end(self) -> None:
        if self._open:
            with contextlib.suppress(TimeoutError, RuntimeError, OSError):  # it went first, or does not read
                async with asyncio.timeout(_CLOSE_S):
                    await self._send(_LOGGED_OUT)


_LOGGED_OUT = {"type": "websocket.close", "code": LOGGED_OUT, "reason": "not logged in any more"}
_STATUS = {"unknown": 401, "not_allowed": 403}


def is_open(path: str, method: str) -> bool:
    """Whether a path is for everybody: the page and its files, and what tells nothing."""
    if path in _OPEN:
        return True
    return not any(path == closed or path.startswith(closed + "/") for closed in _CLOSED)


def _headers(scope: Scope) -> access.Headers:
    found: access.Headers = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


async def _refuse(scope: Scope, send: Send, status: int, error: HoldfastError) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
        return
    about = {**error.as_dict(), "code": "not_allowed"} if status == 401 else error.as_dict()
    body = json.dumps({"error": about}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),
    ]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="holdfast"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
