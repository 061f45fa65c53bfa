"""MCP, loaded when the first agent asks: its library takes a second, which a page that comes back need not wait for."""

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
    """Stands where `McpRoutes` will; its task runs what they need, from the first request to the end."""

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
        except ModuleNotFoundError:  # half of it is there
            await _missing(scope, receive, send)
            return
        await agents(scope, receive, send)

    async def _run(self, loaded: asyncio.Future[McpRoutes]) -> None:
        """One task enters and leaves: the library's scopes ask for that."""
        try:
            await asyncio.to_thread(_load)
            from .mcp import McpRoutes

            agents = McpRoutes(self._home)
        except Exception as e:  # noqa: BLE001  (whatever it is, whoever asked is told)
            self._loaded = None  # the next one to ask tries again
            loaded.set_exception(e)
            loaded.exception()  # read here: whoever asked may have gone
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
