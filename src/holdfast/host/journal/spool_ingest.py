"""From the keepers' spools into the journal: fetched when told, written once, acknowledged when durable.

A session that has ended has no keeper to ask: its spool is read from its folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from ...log import act_spool
from ...model.errors import HoldfastError
from ..sessions.session import Session
from .journal import Journal

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_BATCH = 256  # entries asked for at a time: some 60 kB, well below a frame
_GATHER_S = 0.25  # after word of the first: commands that follow each other are one fetch and one commit, not many
_SETTLE_S = 2.0  # at the host's end: what is not fetched by then is fetched by the next host


class Ingest:
    """One fetch at a time per session; whoever asks meanwhile waits for the next one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = asyncio.Event()

    def heard(self, session: Session, event: Json) -> None:
        kind = event.get("event")
        if kind in ("spooled", "gone") or (kind == "linked" and session.spools):
            self.later(session, _GATHER_S if kind == "spooled" else 0.0)

    def later(self, session: Session, after_s: float = 0.0) -> None:
        """Fetch in the background; nobody waits for it."""
        task = asyncio.get_running_loop().create_task(self._quietly(session, after_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _quietly(self, session: Session, after_s: float) -> None:
        try:
            await self._gather(after_s)
            await self.fetch(session)
        except HoldfastError as e:  # the keeper went, or the disk is full: nothing is lost, it is fetched again
            log.info("the record of %s is fetched later: %s", session.name, e.line())

    async def _gather(self, after_s: float) -> None:
        """Let more come together; a host that leaves takes what there is."""
        if after_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), after_s)

    async def fetch(self, session: Session) -> None:
        """Everything that was spooled so far is in the journal when this returns."""
        async with self._locks.setdefault(session.id, asyncio.Lock()):
            after = await self._journal.ingested(session.id)
            while True:
                events = await self._after(session, after)
                if events:
                    await self._take(session, events)
                    after = int(events[-1]["n"])
                    if session.connected:
                        await session.line.act("ack", upto=after)
                session.manifest["spooled"] = after  # the next generation's numbers go on from there
                if len(events) < _BATCH:
                    return

    async def _after(self, session: Session, after: int) -> list[Json]:
        if not session.connected:
            return await asyncio.to_thread(act_spool.entries, session.folder.spool, after, _BATCH)
        try:
            answer = await session.line.act("events", after=after, max=_BATCH)
        except HoldfastError as e:
            if e.code == "unsupported":  # a keeper of before: the host notes what it sees itself
                return []
            raise
        return [e for e in answer.get("events") or [] if isinstance(e, dict)]

    async def _take(self, session: Session, events: list[Json]) -> None:
        await self._journal.ingest(session.id, session.name, events)
        for event in events:
            if event.get("kind") in ("take", "preempt", "input") and event.get("operator"):
                session.touched_by(str(event["operator"]))
            to = event.get("to")
            if event.get("kind") == "hand" and isinstance(to, dict):
                session.touched_by(str(to.get("operator")))

    def forget(self, session: Session) -> None:
        self._locks.pop(session.id, None)

    async def settled(self) -> None:
        self._leaving.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SETTLE_S)
