"""MCP over HTTP: one server for all, and for each token the agent that it stands for."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from ...mcp import agent as identity
from ...mcp.agent import Agent
from ...mcp.server import build
from ...mcp.tools import time_limits
from ...model.limits import WEB_BODY_BYTES_MAX, WEB_SESSIONS_MAX
from .guard import OPERATOR, Receive, Scope, Send


class McpRoutes:
    """The agents that are here, by operator; each acts with its own key, as it would on stdio."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._agents: dict[str, Agent] = {}
        self._lock = asyncio.Lock()
        server, _ = build(self.who, time_limits.configured(None, os.environ))
        self.manager = StreamableHTTPSessionManager(
            server, max_sessions=WEB_SESSIONS_MAX, max_request_body_size=WEB_BODY_BYTES_MAX
        )

    async def who(self, ctx: Any) -> Agent:
        operator = str(ctx.request.scope[OPERATOR]["operator"])
        async with self._lock:
            if operator not in self._agents:
                self._agents[operator] = await identity.existing(self._home, operator)
            return self._agents[operator]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A session of the handshake era belongs to the operator that opened it; the SDK compares this.
        token = AccessToken(token="", client_id=str(scope[OPERATOR]["operator"]), scopes=[])
        scope["user"] = AuthenticatedUser(token)
        await self.manager.handle_request(scope, receive, send)

    def close(self) -> None:
        for agent in self._agents.values():
            agent.close()
