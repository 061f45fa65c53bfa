"""Change notices: watches a client's subscriptions with its operator's rights, until the client is gone.

A watcher waits for notices of the host; it never polls. Two updates of one resource have a pause between them, because
a client that is notified of every byte would read every byte.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any
from urllib.parse import unquote

from ..client.wait_for_host import wait_for_host
from ..model.errors import HoldfastError
from . import resources
from .agent import Agent

Json = dict[str, Any]
Tell = Callable[[str], Awaitable[None]]
Begun = Callable[[], None]  # called once the current state is known: later changes are notified

LIST = "list"  # in place of an address: the list of resources
WATCHED_MAX = 64  # resources of one connection: each is a request that waits at the host
_PAUSE_S = 1.0  # between two updates of one resource
_BEGIN_S = 5.0  # for the first check; a host that takes longer is watched anyway
_ANYTHING = r"text=(?s)."


async def watch(agent: Agent, uri: str, tell: Tell, begun: Begun = lambda: None) -> None:
    """Notify of every change of a resource, until there can be no more."""
    meant = resources.session_of(uri)
    if meant is not None:
        await _watch_session(agent, meant[0], uri, tell, begun)
    elif uri == resources.TASKS or uri.startswith(resources.TASKS + "/"):
        await _watch_tasks(agent, uri, tell, begun)


async def _watch_session(agent: Agent, session: str, uri: str, tell: Tell, begun: Begun) -> None:
    """Notify of every change of a session's screen or log, and of its end."""
    at = -1
    while True:
        try:
            if at < 0:
                at = int((await agent.host.call("status", session=session))["output"]["end"])
                begun()
            answer = await agent.host.call("wait", session=session, until=_ANYTHING, start=at)
            await tell(uri)
            if answer["event"] == "exit":
                return
            await asyncio.sleep(_PAUSE_S)
            at = max(answer["offset"], int((await agent.host.call("offset", session=session))["end"]))
        except HoldfastError as e:
            if e.code != "host_gone":
                return  # it is gone, or no longer visible to this operator
            await asyncio.sleep(_PAUSE_S)  # the next host continues from the same offset: nothing is missed


async def _watch_tasks(agent: Agent, uri: str, tell: Tell, begun: Begun) -> None:
    """Notify of tasks that any operator changed through this host."""
    if (await agent.host.call("store"))["server"]:
        return
    named = unquote(uri[len(resources.TASKS) + 1 :])

    async def stands() -> str:
        return str((await agent.host.work.tasks.show(named))["changed_at"]) if named else ""

    known = await mark(agent, "tasks")  # first: a change during the check is notified twice, not missed
    try:
        before = await stands()
    except HoldfastError:
        return  # no such task
    begun()

    async def changed() -> None:
        nonlocal before
        now = await stands()
        if not named or now != before:
            await tell(uri)
        before = now

    await _follow(agent, "tasks", known, changed)


async def mark(agent: Agent, of: str) -> str | None:
    """The current mark of the session list or of the tasks; None from an older host."""
    try:
        return str((await agent.host.call("news", of=of))["mark"])
    except HoldfastError:
        return None


async def watch_list(agent: Agent, known: str | None, tell: Callable[[], Awaitable[None]]) -> None:
    """Notify when the session list differs from `known`, also by other operators' sessions."""
    await _follow(agent, "list", known, tell)


async def _follow(agent: Agent, of: str, known: str | None, tell: Callable[[], Awaitable[None]]) -> None:
    while known is not None:
        try:
            known = str((await agent.listening.call("news", of=of, after=known))["mark"])
            await tell()
        except HoldfastError as e:
            if e.code not in ("host_gone", "not_found"):  # it died or was stopped: watch the next one
                return
            await wait_for_host(agent.listening.home)
        await asyncio.sleep(_PAUSE_S)  # changes during the pause are in the next mark


class Subscriptions:
    """The watchers of one connection, by address."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, agent: Agent, uri: str, tell: Tell) -> None:
        """Returns once the watch is active: a client that reads after that and gets no notice is up to date."""
        if self.watches(uri):
            return
        begun = asyncio.Event()
        self._begin(uri, watch(agent, uri, tell, begun.set)).add_done_callback(lambda task: begun.set())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(begun.wait(), _BEGIN_S)

    def add_list(self, agent: Agent, known: str | None, tell: Callable[[], Awaitable[None]]) -> None:
        if known is not None and not self.watches(LIST):
            self._begin(LIST, watch_list(agent, known, tell))

    def _begin(self, uri: str, watching: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        if len(self._tasks) >= WATCHED_MAX:
            watching.close()
            raise HoldfastError("busy", f"limit reached: {WATCHED_MAX} subscriptions", "unsubscribe from some")
        self._tasks[uri] = task = asyncio.get_running_loop().create_task(watching)
        return task

    def has(self, uri: str) -> bool:
        return uri in self._tasks

    def watches(self, uri: str) -> bool:
        """Whether an active watcher notifies of this resource's changes."""
        return uri in self._tasks and not self._tasks[uri].done()

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
