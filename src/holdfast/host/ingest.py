"""From the keepers' spools into the journal: fetched when told, written once, acknowledged when durable."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from ..model.errors import HoldfastError
from .journal import Journal
from .session import Session

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_BATCH = 256  # entries asked for at a time: some 60 kB, well below a frame


class Ingest:
    """One fetch at a time per session; whoever asks meanwhile waits for the next one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._locks: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def heard(self, session: Session, event: Json) -> None:
        kind = event.get("event")
        if kind == "spooled" or (kind == "linked" and session.spools):
            task = asyncio.get_running_loop().create_task(self._quietly(session))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif kind == "gone":
            self._locks.pop(session.id, None)

    async def _quietly(self, session: Session) -> None:
        with contextlib.suppress(HoldfastError):  # the keeper went: what it spooled is on disk, and fetched later
            await self.fetch(session)

    async def fetch(self, session: Session) -> None:
        """Everything that the keeper has spooled so far is in the journal when this returns."""
        async with self._locks.setdefault(session.id, asyncio.Lock()):
            after = await self._journal.ingested(session.id, session.manifest["generation"])
            while session.link is not None:
                try:
                    answer = await session.link.act("events", after=after, max=_BATCH)
                except HoldfastError as e:
                    if e.code == "unsupported":
                        return
                    raise
                events = [e for e in answer.get("events") or [] if isinstance(e, dict)]
                if not events:
                    return
                await self.take(session, events)
                after = int(events[-1]["n"])
                await session.link.act("ack", upto=after)
                if len(events) < _BATCH:
                    return

    async def take(self, session: Session, events: list[Json]) -> None:
        """Write a session's entries, each once however often it is told."""
        await self._journal.ingest(session.id, session.name, events)
        for event in events:
            if event.get("kind") in ("take", "preempt", "input") and event.get("operator"):
                session.touched_by(str(event["operator"]))
            to = event.get("to")
            if event.get("kind") == "hand" and isinstance(to, dict):
                session.touched_by(str(to.get("operator")))

    async def settled(self) -> None:
        """Until the fetches under way are done, at the host's end; not for long."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2.0)
