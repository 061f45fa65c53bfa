"""One tool call under way: whom it acts for, how long it may take, and how it tells of its progress."""

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

_PROGRESS_S = 1.0  # between two words of progress: enough for a client that counts silence in seconds


class ToolCall:
    """What a tool gets besides its arguments. `ctx` is the SDK's request context."""

    def __init__(
        self, agent: Agent, ctx: Any, limit: float, responses: Json | None = None, state: str | None = None
    ) -> None:
        self.agent, self.ctx, self.limit = agent, ctx, limit
        self.responses, self.state = responses, state  # of the stateless era: a dialog's answers, and our echo
        self.host, self.work = agent.host, agent.host.work

    def patience(self, wait_s: float | None) -> float:
        """Seconds that this call may wait."""
        return patience.wanted(wait_s, self.limit)

    def session(self, args: Json) -> AsyncSession:
        """The session that is meant; the host finds it by name or id, so nothing is asked for that."""
        named = str(args.get("session") or "")
        if not named:
            raise invalid("no session given", "status lists them")
        return AsyncSession(self.host, named, named)

    async def status(self, args: Json) -> Json:
        found: Json = await self.host.call("status", session=self.session(args).id)
        return found

    async def waiting(self, what: Coroutine[Any, Any, T], total: float, message: str) -> T:
        """Await something that takes its time, and say so meanwhile. Being cancelled ends the wait and nothing else."""
        if not (self.ctx.meta or {}).get("progress_token"):
            return await what
        task, began = asyncio.ensure_future(what), time.monotonic()
        try:
            while not (await asyncio.wait({task}, timeout=_PROGRESS_S))[0]:
                await self.ctx.session.report_progress(round(time.monotonic() - began, 1), total, message)
            return task.result()
        finally:
            task.cancel()
