"""News: what happened after a mark. Pages and agents wait for it in the same way.

Whatever happens has a subject (a session's id, LIST or TASKS) and a number that grows; a mark names the last number
that somebody has seen, of this host's life. Nothing is kept for a listener: it brings its mark, and is answered once
there is more. So one that was away, or whose host was, misses nothing; and with nobody waiting nothing is done.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from ...model import ids

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..operators.caller import Caller
    from ..sessions.keeper_link import KeeperLink
    from ..sessions.session import Session

LIST = "list"  # which sessions there are, what they are called, which of them live, and who may see them
TASKS = "tasks"
_COMINGS = frozenset({"linked", "gone", "renamed", "removed"})  # events after which another list is told
_REMEMBERED_MAX = 4096  # subjects; whoever is further behind looks at all of them


class News:
    """The one record of what happened, for this host's life."""

    def __init__(self) -> None:
        self._life = ids.new("")
        self._last = self._forgotten = 0
        self._latest: dict[str, int] = {}  # by subject, the oldest first; also of sessions that were removed
        self._waiting: set[asyncio.Future[Any]] = set()

    @property
    def mark(self) -> str:
        return f"{self._life}.{self._last}"

    def note(self, subject: str) -> None:
        self._last += 1
        self._latest.pop(subject, None)
        self._latest[subject] = self._last
        if len(self._latest) > _REMEMBERED_MAX:
            self._forgotten = self._latest.pop(next(iter(self._latest)))
        for woken in self._waiting:
            if not woken.done():
                woken.set_result(None)

    def heard(self, event: object) -> None:
        if event in _COMINGS:
            self.note(LIST)

    def since(self, mark: str) -> set[str] | None:
        """What something happened to after it; None where that is not known: it is another host's, or long ago."""
        life, number = [*mark.split("."), ""][:2]
        if life != self._life or not number.isdecimal() or int(number) < self._forgotten:
            return None
        return {subject for subject, last in self._latest.items() if last > int(number)}

    async def more(self, printing: Iterable[tuple[KeeperLink, int]] = (), lapse_s: float | None = None) -> None:
        """Until something is noted, or one of these prints past its offset. Whoever has looked in the same breath
        misses nothing: it listens from the first step on. After `lapse_s` a grant ends: then less may be seen."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[Any] = loop.create_future()
        watched = list(printing)
        lapse = None if lapse_s is None else loop.call_later(lapse_s, self.note, LIST)
        self._waiting.add(woken)
        for link, end in watched:
            link.watch(end, woken)
        try:
            await woken
        finally:
            self._waiting.discard(woken)
            if lapse is not None:
                lapse.cancel()
            for link, end in watched:
                link.unwatch(end, woken)


def listing(found: Iterable[Session], caller: Caller) -> str:
    """The sessions that this caller may see, in short: ids, names, and which of them live."""
    seen = sorted(f"{s.id} {s.name} {s.live}" for s in found if caller.may("view", s))
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()[:32]
