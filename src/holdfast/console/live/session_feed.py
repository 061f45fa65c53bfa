"""Everything that is going on, as it changes: one look at a session serves every browser of the same operator."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ...client._async.host import AsyncHost
from ...model.errors import HoldfastError
from ...model.limits import LIVE_LOOK_S
from . import messages_in
from .browser_socket import BrowserSocket
from .poll_schedule import PollSchedule

Json = dict[str, Any]
_LOOK_SHARE = 4  # a look that takes long is followed by a pause of so many times its length: a fifth of the time
_AGAIN_S = 1.0  # before the next try while the host is away


class Feed:
    """The sessions as they were seen last. It follows the host while somebody watches, and no longer."""

    def __init__(self, host: AsyncHost, everything: bool) -> None:
        self._host, self._all = host, everything
        self.sessions: dict[str, Json] = {}
        self.looked = False
        self.changed = asyncio.Event()  # replaced after each look
        self.failed: HoldfastError | None = None
        self._looking: asyncio.Task[None] | None = None
        self.watchers = 0

    def join(self) -> None:
        self.watchers += 1
        if self._looking is None or self._looking.done():
            self.failed = None
            self._looking = asyncio.get_running_loop().create_task(self._look())

    def leave(self) -> None:
        self.watchers -= 1
        if not self.watchers and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self.sessions, self.looked, self.changed = {}, False, asyncio.Event()

    async def _look(self) -> None:
        """Look at what the host tells of, and at what is due. Nothing happens: nothing is asked."""
        while True:
            try:
                await self._follow()
            except HoldfastError as e:
                if e.code == "not_allowed":
                    self.failed = e
                    self._tell()
                    return
            await asyncio.sleep(_AGAIN_S)

    async def _follow(self) -> None:
        """Until the host is away."""
        rounds = PollSchedule(time.monotonic())
        mark = (await self._host.call("news", of="sessions"))["mark"]
        wanted: set[str] | None = None
        while True:
            began = time.monotonic()
            await self._see(wanted, rounds)
            took = time.monotonic() - began
            await asyncio.sleep(max(LIVE_LOOK_S, _LOOK_SHARE * took))
            wanted = set()
            while wanted == set():
                ends = {id: s["output"]["end"] for id, s in self.sessions.items()}  # of all: one may be removed
                left = rounds.wait(time.monotonic())
                news = await self._host.call("news", of="sessions", after=mark, ends=ends, timeout=left)
                mark, due = news["mark"], rounds.due(time.monotonic())
                wanted = None if news["subjects"] is None or due is None else due | set(news["subjects"])

    async def _see(self, wanted: set[str] | None, rounds: PollSchedule) -> None:
        """Look at these, or at all; the rest is as it was."""
        only = None if wanted is None else sorted(wanted)
        found = {s["id"]: s for s in await self._host.call("ls", all=self._all, lines=True, still=True, sessions=only)}
        now = time.monotonic()
        for id, session in found.items():
            changed = id not in self.sessions or differs(self.sessions[id], session)
            rounds.saw(id, still=session.pop("still"), changed=changed, now=now)
        gone = self.sessions.keys() - found.keys() if wanted is None else wanted - found.keys()
        for id in gone:
            rounds.gone(id)
        if wanted is None:
            rounds.saw_all(now)
        self.looked = True
        self.sessions = {**{id: s for id, s in self.sessions.items() if id not in gone}, **found}
        self._tell()

    def _tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Feeds:
    """By operator, and by what is to be seen."""

    def __init__(self) -> None:
        self._feeds: dict[tuple[str, bool], Feed] = {}

    def feed(self, operator: str, host: AsyncHost, everything: bool) -> Feed:
        self._feeds = {key: feed for key, feed in self._feeds.items() if feed.watchers}
        return self._feeds.setdefault((operator, everything), Feed(host, everything))


class Watcher:
    """One browser that follows."""

    def __init__(self, line: BrowserSocket, host: AsyncHost, feed: Feed) -> None:
        self._line, self._host, self._feed = line, host, feed
        self._known: dict[str, Json] | None = None

    async def run(self) -> None:
        self._feed.join()
        try:
            await self._line.run(self._sessions(), self._inbox(), self._listen())
        finally:
            self._feed.leave()

    async def _sessions(self) -> None:
        while True:
            changed = self._feed.changed
            if self._feed.failed is not None:
                raise self._feed.failed
            if self._feed.looked:
                await self._tell(self._feed.sessions)
            await changed.wait()

    async def _tell(self, now: dict[str, Json]) -> None:
        """What is new since this browser was told last."""
        before, self._known = self._known, now
        fresh = [s for id, s in now.items() if before is None or id not in before or differs(before[id], s)]
        if fresh or before is None:
            await self._line.tell("sessions", sessions=fresh)
        for id in (before or {}).keys() - now.keys():
            await self._line.tell("gone", id=id)

    async def _inbox(self) -> None:
        after: int | None = None
        while True:
            try:
                page = await self._host.call("inbox", follow=True, after=after)
            except HoldfastError as e:
                if e.code == "not_allowed":
                    raise
                await asyncio.sleep(_AGAIN_S)
                continue
            if page["items"] or after is None:
                await self._line.tell("inbox", items=page["items"])
            after = page["last"]

    async def _listen(self) -> None:
        while True:
            if isinstance(await self._line.listen(), messages_in.Ping):
                await self._line.tell("pong")


def differs(before: Json, now: Json) -> bool:
    """Whether something changed that is worth telling: not when it was looked at, nor the words it was judged in."""
    return _told(before) != _told(now)


def _told(session: Json) -> Json:
    activity = session.get("activity") or {}
    judged = {key: value for key, value in activity.items() if key != "evidence"}
    return {**session, "observed_at": None, "activity": judged}
