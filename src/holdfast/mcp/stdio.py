"""`hold mcp`: one client on stdin and stdout, one agent, and nothing that would be missed when it ends."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

from mcp.server.stdio import stdio_server

from . import agent as identity
from . import patience
from .agent import Agent
from .server import build, client_name


class One:
    """The agent of this process: made with the first call that needs it, and again after a try that failed."""

    def __init__(self, name: str | None) -> None:
        self._name, self._agent, self._lock = name, None, asyncio.Lock()
        self._agent: Agent | None

    async def who(self, ctx: Any) -> Agent:
        async with self._lock:
            if self._agent is None:
                name = self._name or identity.name_from(client_name(ctx))
                self._agent = await identity.enlist(None, name)
            return self._agent

    def close(self) -> None:
        if self._agent is not None:
            self._agent.close()


async def serve(name: str | None, wait_max: str | None) -> None:
    one = One(name or os.environ.get("HOLDFAST_OPERATOR"))
    server, options = build(one.who, patience.configured(wait_max, os.environ))
    try:
        async with stdio_server() as (read, write):
            await server.run(read, write, options)
    finally:
        one.close()


def main(name: str | None, wait_max: str | None) -> None:
    logging.basicConfig(level=logging.WARNING)  # on stderr, where clients keep it: stdout is the protocol's
    asyncio.run(serve(name, wait_max))
