"""What the port serves, by path. Whoever adds a route adds it behind the guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette import routing
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket

from ..client._async.host import AsyncHost
from ..model.errors import HoldfastError, not_found
from ..model.limits import LIVE_MAX, VIEWERS_MAX
from .handlers.login import LoginRoutes
from .http import endpoint, openapi
from .http.callers import Callers, Where
from .http.guard import HOST, OPERATOR, App, Guard
from .http.mcp_lazy import LazyMcp
from .live.browser_socket import FULL, BrowserSocket
from .live.quota import Quota
from .live.session_feed import Feeds, Watcher
from .live.socket_query import live_query, wanted
from .live.terminal_socket import TerminalViewer
from .page import page


async def healthz(request: Request) -> JSONResponse:
    """That this process answers, and nothing else."""
    return JSONResponse({"ok": True}, headers={"cache-control": "no-store"})


async def _no_such(request: Request) -> Response:
    return endpoint.failed(not_found("there is nothing here", "see /api/openapi.json"))


class Sockets:
    """The two sockets, and how many of each everybody has open."""

    def __init__(self) -> None:
        self._feeds, self._terminals, self._pages = Feeds(), Quota(VIEWERS_MAX), Quota(LIVE_MAX)

    async def attach(self, socket: WebSocket) -> None:
        async def show(line: BrowserSocket) -> None:
            await TerminalViewer(line, socket.scope[HOST], wanted(socket)).run()

        await self._serve(socket, self._terminals, "terminals", show)

    async def live(self, socket: WebSocket) -> None:
        async def follow(line: BrowserSocket) -> None:
            host, query = socket.scope[HOST], live_query(socket)
            await Watcher(line, host, self._feeds.feed(_who(socket), host, query.all)).run()

        await self._serve(socket, self._pages, "pages", follow)

    @staticmethod
    async def _serve(
        socket: WebSocket, room: Quota, what: str, show: Callable[[BrowserSocket], Awaitable[None]]
    ) -> None:
        await socket.accept()
        line, who = BrowserSocket(socket), _who(socket)
        if not room.has(who):
            await line.close(FULL, f"{room.of(who)} {what} of yours are open already: close some")
            return
        with room.take(who):
            try:
                await show(line)
            except HoldfastError as e:
                await line.refuse(e)


def _who(socket: WebSocket) -> str:
    return str(socket.scope[OPERATOR]["operator"])


def make(host: AsyncHost, where: Where) -> App:
    """The whole application, guarded."""
    agents = LazyMcp(host.home.path)
    callers = Callers(host, where)
    doors, sockets = LoginRoutes(callers), Sockets()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with agents.running():
            yield
        callers.close()

    api = [*openapi.TABLE, *doors.routes()]
    routes: list[routing.BaseRoute] = [
        routing.Route("/healthz", healthz),
        routing.Route("/mcp", agents),
        routing.Route("/api/login", doors.login, methods=["POST"]),
        routing.WebSocketRoute("/api/live", sockets.live),
        routing.WebSocketRoute("/api/sessions/{session}/attach", sockets.attach),
        *(routing.Route(one.path, endpoint.endpoint(one), methods=[one.method]) for one in api),
        routing.Route("/api/{rest:path}", _no_such, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        routing.Route("/api", _no_such),
        routing.Route("/mcp/{rest:path}", _no_such),
        routing.Route("/{rest:path}", page, methods=["GET"]),
    ]
    return Guard(Starlette(routes=routes, lifespan=lifespan), callers)
