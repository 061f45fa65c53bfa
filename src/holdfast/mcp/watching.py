"""Word of changes: what a client subscribed to is watched as its operator, and by nobody once it is gone.

A watcher waits for the host to say that output came; it never looks by the clock. Between two words about one
resource there is a pause, because a client that hears of every byte reads every byte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ..model.errors import HoldfastError
from . import resources
from .agent import Agent

Json = dict[str, Any]
Tell = Callable[[str], Awaitable[None]]

WATCHED_MAX = 64  # resources of one connection: each is a request that waits at the host
_PAUSE_S = 1.0  # between two updates of one resource
_ANYTHING = r"text=(?s)."


async def watch(agent: Agent, uri: str, tell: Tell) -> None:
    """Tell of every change of a session's screen or log, until it ends; then tell once more."""
    meant = resources.session_of(uri)
    if meant is None:
        return  # others change through tools only, and those tell by themselves
    session = meant[0]
    try:
        at = int((await agent.host.call("status", session=session))["output"]["end"])
        while True:
            answer = await agent.host.call("wait", **{"session": session, "for": _ANYTHING, "from": at})
            await tell(uri)
            if answer["event"] == "exit":
                return
            await asyncio.sleep(_PAUSE_S)
            at = max(answer["offset"], int((await agent.host.call("offset", session=session))["end"]))
    except HoldfastError as e:
        if e.code == "host_gone":
            return await watch(agent, uri, tell)
        return  # it is gone, or no longer ours to see


class Watchers:
    """The watchers of one connection, by address."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def add(self, agent: Agent, uri: str, tell: Tell) -> None:
        if uri in self._tasks and not self._tasks[uri].done():
            return
        if len(self._tasks) >= WATCHED_MAX:
            raise HoldfastError("busy", f"{WATCHED_MAX} resources are watched already", "unsubscribe from some")
        self._tasks[uri] = asyncio.get_running_loop().create_task(watch(agent, uri, tell))

    def has(self, uri: str) -> bool:
        return uri in self._tasks

    def remove(self, uri: str) -> None:
        task = self._tasks.pop(uri, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
