"""One tool call: its agent, its time limit, and its progress notices."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from ...client._async.host import AsyncSession
from ...model.errors import invalid
from ..agent import Agent
from . import time_limits as patience

T = TypeVar("T")
Json = dict[str, Any]

_PROGRESS_S = 1.0  # between two progress notices: often enough for a client that times out on silence


class ToolCall:
    """The context of a tool call. `ctx` is the SDK's request context."""

    def __init__(
        self, agent: Agent, ctx: Any, limit: float, responses: Json | None = None, state: str | None = None
    ) -> None:
        self.agent, self.ctx, self.limit = agent, ctx, limit
        self.responses, self.state = (
            responses,
            state,
        )  # of the stateless protocol: a dialog's answers, and the echoed state
        self.host, self.work = agent.host, agent.host.work

    def patience(self, wait_s: float | None) -> float:
        """Seconds that this call may wait."""
        return patience.wanted(wait_s, self.limit)

    def session(self, args: Json) -> AsyncSession:
        """The session argument; the host resolves it with the next call."""
        named = str(args.get("session") or "")
        if not named:
            raise invalid("no session given", "status lists them")
        return AsyncSession(self.host, named, named)

    async def status(self, args: Json) -> Json:
        found: Json = await self.host.call("status", session=self.session(args).id)
        return found

    async def waiting(self, what: Coroutine[Any, Any, T], total: float, message: str) -> T:
        """Await a slow operation and send progress notices; cancelling ends only the wait."""
        if not (self.ctx.meta or {}).get("progress_token"):
            return await what
        task, began = asyncio.ensure_future(what), time.monotonic()
        try:
            while not (await asyncio.wait({task}, timeout=_PROGRESS_S))[0]:
                await self.ctx.session.report_progress(round(time.monotonic() - began, 1), total, message)
            return task.result()
        finally:
            task.cancel()
