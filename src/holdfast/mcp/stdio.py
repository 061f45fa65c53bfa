"""`hold mcp`: one client on stdin and stdout, one agent, and nothing that would be missed when it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import Any

from mcp.server.stdio import stdio_server

from . import agent as identity
from .agent import Agent
from .server import build, client_name
from .tools import time_limits


class StdioAgent:
    """The agent of this process: made with the first call that needs it, and again after a try that failed."""

    def __init__(self, name: str | None) -> None:
        self._name, self._lock = name, asyncio.Lock()
        self._agent: Agent | None = None

    async def who(self, ctx: Any) -> Agent:
        async with self._lock:
            if self._agent is None:
                name = self._name or identity.name_from(client_name(ctx))
                self._agent = await identity.enrol_agent(None, name)
            return self._agent

    def close(self) -> None:
        if self._agent is not None:
            self._agent.close()


async def serve(name: str | None, wait_max: str | None) -> None:
    one = StdioAgent(name or os.environ.get("HOLDFAST_OPERATOR"))
    server, options = build(one.who, time_limits.configured(wait_max, os.environ))
    try:
        async with stdio_server() as (read, write):
            try:
                await server.run(read, write, options)
            except asyncio.CancelledError:
                # What was to be written could not be. The thread that waits for more input has nobody to wait for.
                logging.error("the connection to the client broke")
                os._exit(1)
    finally:
        one.close()


def main(name: str | None, wait_max: str | None) -> None:
    logging.basicConfig(level=logging.WARNING)  # on stderr, where clients keep it: stdout is the protocol's
    # A thread waits in read(0) and cannot be called back: an interrupt ends the process, as it ends any other filter.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(serve(name, wait_max))
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client is gone; nobody is left to tell
