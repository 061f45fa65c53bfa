"""What the port serves, by path. Whoever adds a route adds it behind the guard."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ..client.aio import AsyncHost
from .guard import App, Guard


async def healthz(request: Request) -> JSONResponse:
    """That this process answers, and nothing else."""
    return JSONResponse({"ok": True}, headers={"cache-control": "no-store"})


async def _without_mcp(request: Request) -> JSONResponse:
    error = {"code": "failed", "message": "the MCP library is not installed", "hint": "pip install 'holdfast[mcp]'"}
    return JSONResponse({"error": error}, status_code=501)


def make(host: AsyncHost, address: tuple[str, int]) -> App:
    """The whole application, guarded."""
    agents: Any = None
    try:
        from .agents import Agents

        agents = Agents(host.home.path)
    except ModuleNotFoundError as e:
        if (e.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if agents is None:
            yield
            return
        async with agents.manager.run():
            yield
        agents.close()

    routes = [Route("/healthz", healthz), Route("/mcp", agents or _without_mcp)]
    return Guard(Starlette(routes=routes, lifespan=lifespan), host, address)
