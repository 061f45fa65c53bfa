"""Which sessions wait for somebody: looked at while a person wants to know, and never otherwise.

The kernel has no event for a blocked read, so it is sampled about every two seconds, and only while a notification is
configured or a client follows the inbox. A session that was found blocked is left alone until bytes move. `look`
answers on the spot for everybody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from ..model import asks, limits
from ..model.activity import Activity
from ..model.errors import HoldfastError
from .inbox import Inbox
from .session import Session

Json = dict[str, Any]
Observe = Callable[[Session, list[int] | None], Awaitable[tuple[Json, Activity]]]
log = logging.getLogger("holdfast.host")

KINDS = {"waiting_for_input": "input", "waiting_for_secret": "secret"}
_BLOCKED = (*KINDS, "at_prompt", "exited")  # nothing changes until bytes move
_AT_ONCE = 32  # keepers asked in parallel, as by `ls`


class Watch:
    """`live()` gives the sessions with a keeper, `forest()` their processes from one walk of /proc."""

    def __init__(
        self, inbox: Inbox, live: Callable[[], list[Session]], forest: Callable[[], dict[int, list[int]]],
        observe: Observe,
    ) -> None:  # fmt: skip
        self._inbox, self._live, self._forest, self._observe = inbox, live, forest, observe
        self._followers = 0
        self._configured = False
        self._task: asyncio.Task[None] | None = None
        self._parked: dict[str, asyncio.Task[None]] = {}
        self._due = asyncio.Event()
        self._settling = asyncio.Lock()  # two who look at the same moment make one item, not two

    # -- who wants to know

    def configured(self, wanted: bool) -> None:
        """Whether new items are to be told to somebody who is not connected."""
        self._configured = wanted
        self._start_or_stop()

    @contextlib.contextmanager
    def followed(self) -> Any:
        """While a client follows the inbox."""
        self._followers += 1
        self._start_or_stop()
        try:
            yield
        finally:
            self._followers -= 1
            # A follower asks again right after each answer: stopping in between would only cost a walk.
            asyncio.get_running_loop().call_later(limits.INBOX_SAMPLE_S, self._start_or_stop)

    @property
    def _wanted(self) -> bool:
        return self._configured or self._followers > 0

    def _start_or_stop(self) -> None:
        if self._wanted and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(_log_failure)
        elif not self._wanted and self._task is not None:
            self.close()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for task in self._parked.values():
            task.cancel()
        self._parked.clear()

    # -- looking

    def heard(self, session: Session, event: Json) -> None:
        """Something happened in a session: it is worth another look."""
        if self._task is not None:
            self._unpark(session.id)

    def _unpark(self, session_id: str) -> None:
        task = self._parked.pop(session_id, None)
        if task is not None:
            task.cancel()
        self._due.set()

    async def _run(self) -> None:
        while True:
            self._due.clear()
            await self.look([s for s in self._live() if s.id not in self._parked], park=True)
            if all(s.id in self._parked for s in self._live()):
                await self._due.wait()
            await asyncio.sleep(limits.INBOX_SAMPLE_S)

    async def look(self, sessions: list[Session], *, park: bool = False) -> None:
        """Look at these sessions now: new items for those that wait, and an end for items that no longer hold."""
        if not sessions:
            return
        forest = self._forest()
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(session: Session) -> None:
            async with gate:
                await self._look_at(session, forest, park)

        await asyncio.gather(*(one(s) for s in sessions))

    async def _look_at(self, session: Session, forest: dict[int, list[int]], park: bool) -> None:
        link = session.link
        if link is None:
            return
        try:
            sample, activity = await self._observe(session, forest.get(link.welcome.result()["keeper"]))
        except HoldfastError:
            return  # it ended, or does not answer: neither waits for a person
        async with self._settling:
            await self._settle(session, sample, activity)
        if park and self._task is not None and activity.kind in _BLOCKED and session.link is not None:
            moved = asyncio.get_running_loop().create_task(self._until_moved(session, sample["output"]["end"]))
            self._parked[session.id] = moved

    async def _until_moved(self, session: Session, end: int) -> None:
        if session.link is not None:
            await session.link.grown(end)
        self._parked.pop(session.id, None)
        self._due.set()

    async def _settle(self, session: Session, sample: Json, activity: Activity) -> None:
        """Make the items of one session agree with what was seen of it."""
        kind = KINDS.get(activity.kind)
        known = [i for i in self._inbox.open_items() if i["session"] == session.id and i["kind"] in asks.TYPED]
        holds = [i for i in known if i["kind"] == kind and asks.same_prompt(i, sample)]
        if len(holds) < len(known):
            await self._inbox.vanish(lambda i: i in known and i not in holds)
        if kind is None or holds:
            return
        await self._inbox.add(
            kind, session=about(session), text=activity.prompt or "",
            detail={"confidence": activity.confidence, "evidence": activity.evidence},
            prompt={"input_at": sample["input_at"], "offset": sample["output"]["end"]},
        )  # fmt: skip


def about(session: Session) -> Json:
    return {"session": session.id, "session_name": session.name, "generation": session.manifest["generation"]}


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("the inbox stopped watching", exc_info=task.exception())
