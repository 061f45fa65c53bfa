"""Which sessions something happened to, and after what: for those who show a list of them and look again at few."""

from __future__ import annotations

import asyncio
from typing import Any

from ..model import ids
from .session import Session

_REMEMBERED_MAX = 4096  # sessions; whoever is further behind looks at all of them


class Changes:
    """Every change has a number that grows, of this host's life: `mark` names it for clients."""

    def __init__(self) -> None:
        self._life = ids.new("")
        self._last = self._forgotten = 0
        self._latest: dict[str, int] = {}  # by session, the oldest change first; also of those that were removed
        self._changed = asyncio.Event()

    @property
    def mark(self) -> str:
        return f"{self._life}.{self._last}"

    def note(self, session_id: str) -> None:
        self._last += 1
        self._latest.pop(session_id, None)
        self._latest[session_id] = self._last
        if len(self._latest) > _REMEMBERED_MAX:
            self._forgotten = self._latest.pop(next(iter(self._latest)))
        self._changed.set()
        self._changed = asyncio.Event()

    def since(self, mark: str) -> set[str] | None:
        """The sessions that changed after it; None where that is not known: it is another host's, or long ago."""
        life, _, number = mark.partition(".")
        if life != self._life or not number.isdigit() or int(number) < self._forgotten:
            return None
        return {session for session, change in self._latest.items() if change > int(number)}

    def waiter(self) -> asyncio.Event:
        """Set at the next change from now on; taken before one looks, so that nothing falls between."""
        return self._changed


async def news(changes: Changes, mark: str, ends: dict[Session, int]) -> set[str] | None:
    """Sessions that changed after `mark` or printed past `ends`, once there are some; None is all of them."""

    def found() -> set[str] | None:
        moved = {s.id for s, end in ends.items() if s.link is not None and s.link.end > end}
        changed = changes.since(mark)
        return None if changed is None else changed | moved

    grown: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    watched = [(s.link, end) for s, end in ends.items() if s.link is not None]
    for link, end in watched:
        link.watch(end, grown)
    told = asyncio.ensure_future(changes.waiter().wait())  # of now: the task itself begins later
    either: set[asyncio.Future[Any]] = {grown, told}
    try:
        if found() == set():
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return found()
    finally:
        told.cancel()
        grown.cancel()
        for link, end in watched:
            link.unwatch(end, grown)
