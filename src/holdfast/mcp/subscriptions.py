"""Word of changes: what a client subscribed to is watched as its operator, and by nobody once it is gone.

A watcher waits for the host to say that something came; it never looks by the clock. Between two words about one
resource there is a pause, because a client that hears of every byte reads every byte.
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
Begun = Callable[[], None]  # called once it is known how things stand: what changes from then on is told

LIST = "list"  # in place of an address: which resources there are
WATCHED_MAX = 64  # resources of one connection: each is a request that waits at the host
_PAUSE_S = 1.0  # between two updates of one resource
_BEGIN_S = 5.0  # for the first look; a host that takes longer is listened to all the same
_ANYTHING = r"text=(?s)."


async def watch(agent: Agent, uri: str, tell: Tell, begun: Begun = lambda: None) -> None:
    """Tell of every change of a resource, until there will be no more."""
    meant = resources.session_of(uri)
    if meant is not None:
        await _watch_session(agent, meant[0], uri, tell, begun)
    elif uri == resources.TASKS or uri.startswith(resources.TASKS + "/"):
        await _watch_tasks(agent, uri, tell, begun)


async def _watch_session(agent: Agent, session: str, uri: str, tell: Tell, begun: Begun) -> None:
    """Tell of every change of a session's screen or log, until it ends; then tell once more."""
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
                return  # it is gone, or no longer ours to see
            await asyncio.sleep(_PAUSE_S)  # the next host goes on from the same offset: nothing is missed


async def _watch_tasks(agent: Agent, uri: str, tell: Tell, begun: Begun) -> None:
    """Tell of tasks that anybody changed through this host. A server's own database tells nobody."""
    if (await agent.host.call("store"))["server"]:
        return
    named = unquote(uri[len(resources.TASKS) + 1 :])

    async def stands() -> str:
        return str((await agent.host.work.tasks.show(named))["changed_at"]) if named else ""

    known = await mark(agent, "tasks")  # first: what happens while we look is told again, not missed
    try:
        before = await stands()
    except HoldfastError:
        return  # there is no such task
    begun()

    async def changed() -> None:
        nonlocal before
        now = await stands()
        if not named or now != before:
            await tell(uri)
        before = now

    await _follow(agent, "tasks", known, changed)


async def mark(agent: Agent, of: str) -> str | None:
    """How the list of sessions or the tasks stand; None from a host that cannot say."""
    try:
        return str((await agent.host.call("news", of=of))["mark"])
    except HoldfastError:
        return None


async def watch_list(agent: Agent, known: str | None, tell: Callable[[], Awaitable[None]]) -> None:
    """Tell whenever there are other sessions than `known` was about: also those that somebody else started."""
    await _follow(agent, "list", known, tell)


async def _follow(agent: Agent, of: str, known: str | None, tell: Callable[[], Awaitable[None]]) -> None:
    while known is not None:
        try:
            known = str((await agent.listening.call("news", of=of, after=known))["mark"])
            await tell()
        except HoldfastError as e:
            if e.code not in ("host_gone", "not_found"):  # it died, or was sent to rest: the next one is listened to
                return
            await wait_for_host(agent.listening.home)
        await asyncio.sleep(_PAUSE_S)  # what comes meanwhile is in the next mark


class Subscriptions:
    """The watchers of one connection, by address."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, agent: Agent, uri: str, tell: Tell) -> None:
        """Returns when it watches: whoever looks after that, and hears nothing, has seen the latest."""
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
            raise HoldfastError("busy", f"{WATCHED_MAX} resources are watched already", "unsubscribe from some")
        self._tasks[uri] = task = asyncio.get_running_loop().create_task(watching)
        return task

    def has(self, uri: str) -> bool:
        return uri in self._tasks

    def watches(self, uri: str) -> bool:
        """Whether its changes are told of by a watcher that goes on."""
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
