"""Runs that wait for a person, as inbox items. The store says which there are; the items follow it.

The home's store is looked at after each call that can park or free a run, when a worker says that it parked one, and
whenever a person looks at the inbox: what a host that was killed did not come to is made up for then.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ...model.errors import HoldfastError
from .items import Inbox

Json = dict[str, Any]
KIND = "parked_run"
log = logging.getLogger("holdfast.host")


def words(one: Json) -> str:
    """What waits, in one line."""
    what = f"{one['job']} {one['run']}"
    if one["reason"] == "crashes":
        return f"{what}: {one['count']} workers died at it, and no other one takes it"
    return f"{what} waits for step {one['step']!r} to be settled"


class ParkedRuns:
    """`follow` what a store says."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox, self._lock = inbox, asyncio.Lock()

    async def follow(self, parked: list[Json]) -> None:
        """Items for what is parked there now, and for nothing else. A disk that is full stops no worker."""
        async with self._lock:
            there = {
                (i["detail"]["run"], i["detail"]["step"]): i["id"]
                for i in self._inbox.open_items()
                if i["kind"] == KIND
            }
            now = {(p["run"], p.get("step")): p for p in parked}
            over = {there[key] for key in there.keys() - now.keys()}
            try:
                if over:
                    await self._inbox.vanish(lambda i: i["id"] in over)
                for key in [key for key in now if key not in there]:
                    one = now[key]
                    detail = {k: one.get(k) for k in ("run", "job", "step", "reason", "hint")}
                    await self._inbox.add(KIND, text=words(one), detail=detail)
            except HoldfastError as e:
                log.warning("parked runs are not in the inbox: %s", e.line())
