"""Runs that wait for a person, as inbox items. The store says which there are; the items follow it.

The home's own store is looked at after each call that can park or free a run, and whenever somebody looks at the inbox:
what a host that was killed did not come to is made up for then. Of a store on a server, which workers write past the
host, they tell what they see there.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from ..model.errors import HoldfastError, invalid
from ..model.limits import ASK_TEXT_MAX, PARKED_SHOWN_MAX
from ..model.work import check_word
from .inbox import Inbox

Json = dict[str, Any]
KIND = "parked_run"
HOME = ""  # the home's own store
log = logging.getLogger("holdfast.host")


def checked(parked: object) -> list[Json]:
    """Runs as a worker tells of them: what a person is shown, and nothing else."""
    if not isinstance(parked, list) or len(parked) > PARKED_SHOWN_MAX:
        raise invalid(f"parked runs are a list of at most {PARKED_SHOWN_MAX}", "tell of the oldest")
    found: list[Json] = []
    for one in parked:
        if not isinstance(one, dict) or one.get("reason") not in ("in_doubt", "crashes"):
            raise invalid("a parked run says why it is", "upgrade the client")
        words = {name: check_word(f"its {name}", one.get(name)) for name in ("run", "job")}
        step = check_word("its step", one.get("step")) if one["reason"] == "in_doubt" else None
        count, hint = one.get("count"), one.get("hint")
        if (step is None and type(count) is not int) or not isinstance(hint, str) or len(hint) > ASK_TEXT_MAX:
            raise invalid("a parked run says how many crashed and what to do", "upgrade the client")
        found.append({**words, "reason": one["reason"], "step": step, "count": count, "hint": hint})
    return found


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

    async def follow(self, store: str, parked: list[Json], asker: Json | None = None) -> None:
        """Items for what is parked there now, and for nothing else. A disk that is full stops no worker."""
        async with self._lock:
            there = {
                (i["detail"]["run"], i["detail"]["step"]): i["id"]
                for i in self._inbox.open_items() if i["kind"] == KIND and i["detail"]["store"] == store
            }
            now = {(p["run"], p.get("step")): p for p in parked}
            over = {there[key] for key in there.keys() - now.keys()}
            try:
                if over:
                    await self._inbox.vanish(lambda i: i["id"] in over)
                for key in [key for key in now if key not in there]:
                    one = now[key]
                    detail = {k: one.get(k) for k in ("run", "job", "step", "reason", "hint")} | {"store": store}
                    await self._inbox.add(KIND, asker=asker, text=words(one), detail=detail)
            except HoldfastError as e:
                log.warning("parked runs are not in the inbox: %s", e.line())
