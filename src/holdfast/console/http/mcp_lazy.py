"""Loads the MCP library on the first agent request, because the import takes a second."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from .guard import Receive, Scope, Send

if TYPE_CHECKING:
    from .mcp import McpRoutes


class LazyMcp:
    """A placeholder for `McpRoutes`; its task runs them from the first request on."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._loaded: asyncio.Future[McpRoutes] | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self._closing.set()
            if self._task is not None:
                await asyncio.gather(self._task, return_exceptions=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if importlib.util.find_spec("mcp") is None:
            await _missing(scope, receive, send)
            return
        if self._loaded is None:
            self._loaded = asyncio.get_running_loop().create_future()
            self._task = asyncio.ensure_future(self._run(self._loaded))
        try:
            agents = await asyncio.shield(self._loaded)
        except ModuleNotFoundError:  # a partly imported library
            await _missing(scope, receive, send)
            return
        await agents(scope, receive, send)

    async def _run(self, loaded: asyncio.Future[McpRoutes]) -> None:
        """Enter and leave the library's scopes in one task, as they require."""
        try:
            await asyncio.to_thread(_load)
            from .mcp import McpRoutes

            agents = McpRoutes(self._home)
        except Exception as e:  # noqa: BLE001  (any error is returned to the caller)
            self._loaded = None  # the next request tries again
            loaded.set_exception(e)
            loaded.exception()  # retrieve the exception here: the caller may be gone
            return
        try:
            async with agents.manager.run():
                loaded.set_result(agents)
                await self._closing.wait()
        finally:
            agents.close()


def _load() -> None:
    from . import mcp as agents  # noqa: F401  (the import is what takes long)


async def _missing(scope: Scope, receive: Receive, send: Send) -> None:
    error = {"code": "failed", "message": "the MCP library is not installed", "hint": "pip install 'holdfast[mcp]'"}
    await JSONResponse({"error": error}, status_code=501)(scope, receive, send)
