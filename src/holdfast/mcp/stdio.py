"""`hold mcp`: serves one client on stdin and stdout, as one agent; keeps no state."""

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
    """The agent of this process: enrolled at the first call that needs it, and again after a failed try."""

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
                # Writing failed: the client is gone, and no input will come.
                logging.error("the connection to the client broke")
                os._exit(1)
    finally:
        one.close()


def main(name: str | None, wait_max: str | None) -> None:
    logging.basicConfig(level=logging.WARNING)  # on stderr, which clients log: stdout is for the protocol
    # A thread blocks in read(0) and cannot be interrupted: Ctrl-C ends the process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        asyncio.run(serve(name, wait_max))
    except* (BrokenPipeError, ConnectionResetError):
        pass  # the client is gone
