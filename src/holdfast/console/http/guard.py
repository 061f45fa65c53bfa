"""Checks every request first: the exact Host, the exact Origin, and a valid login or token.

A browser on this machine can send requests to this port from any page. So only the port's own host names are answered
(another name that resolves here is another site), and only the port's own pages may call. A token is accepted in the
Authorization header only, because URLs end up in logs. A logged-in browser has a cookie, which counts for the API only
and under the conditions of headers.py.
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

OPERATOR = "holdfast.operator"  # the scope's key of the caller
HOST = "holdfast.host"  # the caller's host connection
_OPEN = frozenset({"/healthz", "/api/login"})  # paths without data, and so without a login
_CLOSED = ("/api", "/mcp")  # these and all below; everything else is the page, which any client may load
_CLOSE_S = 5.0  # for the closing message; a browser that does not read is cut off
_WATCH_AFTER_S = 1.0  # a longer request is a stream, and ends when its caller's login does


class Guard:
    """ASGI middleware around everything that this port serves."""

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
            return 421, HoldfastError(
                "not_allowed", "unknown Host header", "use the address that hold up --web printed"
            )
        if origins and (len(origins) != 1 or origins[0].decode("latin-1") not in self._origins):
            return 403, HoldfastError("not_allowed", "requests from other sites are not allowed", "")
        return None

    async def _identify(self, scope: Scope, headers: access.Headers) -> tuple[str, str, Any, Any]:
        """The caller's proof (the operation that checks it, and a hash), host connection and identity."""
        if b"authorization" in headers or not scope["path"].startswith("/api"):
            hash = access.bearer(headers)
            who = await self._callers.by_token(hash) if hash is not None else None
            if hash is None or who is None:
                raise HoldfastError("unknown", "no valid token", "make one: hold mcp token AGENT")
            return "token_check", hash, self._callers.host_of(str(who["operator"])), who
        found = await self._callers.by_cookie(access.cookies(headers, self._callers.port))
        if found is None:
            raise HoldfastError("unknown", "this browser is not logged in", "log in with the link of: hold web link")
        refused = access.cookie_refused(scope.get("method", "GET"), headers, socket=scope["type"] == "websocket")
        if refused is not None:
            raise refused
        return "login_check", found[0], self._callers.host_for(found[1]), found[1]

    async def _while_valid(self, check: str, hash: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and cut it off as soon as its caller's login ends."""
        socket = _Socket(send, lambda: self._callers.has_ended(check, hash))
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
                await asyncio.sleep(_WATCH_AFTER_S)  # the host is down: ask again when it is back


class _Socket:
    """Tracks a WebSocket's state. When its caller's login ends, it is closed with the same reason, whether the guard
    or the application's own call notices first."""

    def __init__(self, send: Send, has_ended: Callable[[], Awaitable[bool]]) -> None:
        self._send, self._has_ended, self._open = send, has_ended, False

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "websocket.close" and message.get("code") == NOT_ALLOWED and await self._has_ended():
            message = _LOGGED_OUT
        self._open = {"websocket.accept": True, "websocket.close": False}.get(message["type"], self._open)
        await self._send(message)

    async def end(self) -> None:
        if self._open:
            with contextlib.suppress(TimeoutError, RuntimeError, OSError):  # it closed first, or does not read
                async with asyncio.timeout(_CLOSE_S):
                    await self._send(_LOGGED_OUT)


_LOGGED_OUT = {"type": "websocket.close", "code": LOGGED_OUT, "reason": "no longer logged in"}
_STATUS = {"unknown": 401, "not_allowed": 403}


def is_open(path: str, method: str) -> bool:
    """Whether a path needs no login: the page and its files, and paths without data."""
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
