"""`news`: the operation by which everybody hears of what happened, and of nothing that they may not see."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from ...model.errors import invalid
from ..base import Base, number
from .feed import LIST, TASKS, listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..operators.caller import Caller
    from ..sessions.keeper_link import KeeperLink

Json = dict[str, Any]
Subjects = set[str] | None  # None is whatever there is
SESSIONS = "sessions"
_AFTER_S = 0.001  # a grant ends by the clock on the wall, a wait by another: looked at a little later, it is over


class Telling(Base):
    """One operation, in which a listener waits."""

    async def op_news(self, request: Json, caller: Caller) -> Json:
        """An answer comes when something happened after `after`, the mark of an earlier answer, or the time is up;
        without a mark it comes at once. `of` says what is meant:

        sessions    to which of them something happened, or which printed more than `ends` says, by id. Those in `ends`
                    that the caller does not see (any more) are told at once, whatever becomes of them
        list        whether there are other sessions to see, or under other names
        tasks       whether one was changed through this host
        """
        of, mark = str(request.get("of")), str(request.get("after") or "")
        if of not in (SESSIONS, LIST, TASKS):
            raise invalid(f"there is no news of {of[:40]!a}", f"of {SESSIONS}, {LIST} or {TASKS}")
        ends = _ends(request.get("ends") or {}) if of == SESSIONS else {}
        found: Subjects = set()
        hidden = self._hidden(ends, caller)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(number(request.get("timeout"), "a timeout")):
                while True:
                    mark, found = self._after(mark, of, ends, caller)
                    if found is None or (found := found | hidden):
                        break
                    await self.daemon.news.more(self._printing(ends), _lapse_s(caller))
        return {"mark": mark, "subjects": None if found is None else sorted(found)}

    def _after(self, mark: str, of: str, ends: dict[str, int], caller: Caller) -> tuple[str, Subjects]:
        """The mark as of now, and what is news to this caller since the given one."""
        now, since = self.daemon.news.mark, self.daemon.news.since(mark)
        if of == TASKS:
            return now, since and since & {TASKS}
        if of == LIST:
            known = mark.rpartition(".")[2]
            same = since is not None and LIST not in since
            seen = known if same else listing(self.registry.sessions.values(), caller)
            return f"{now}.{seen}", set() if seen == known else {LIST}
        if since is None:
            return now, None
        hidden = self._hidden(ends, caller) if LIST in since else set()
        printed = {id for id, end in ends.items() if (link := self._link(id)) is not None and link.end > end}
        return now, {id for id in since if self._shows(id, caller)} | hidden | printed

    def _shows(self, session_id: str, caller: Caller) -> bool:
        session = self.registry.sessions.get(session_id)
        return session is not None and caller.may("view", session)

    def _hidden(self, ends: dict[str, int], caller: Caller) -> set[str]:
        return {id for id in ends if not self._shows(id, caller)}

    def _link(self, session_id: str) -> KeeperLink | None:
        session = self.registry.sessions.get(session_id)
        return None if session is None else session.link

    def _printing(self, ends: dict[str, int]) -> Iterator[tuple[KeeperLink, int]]:
        return ((link, end) for id, end in ends.items() if (link := self._link(id)) is not None)


def _lapse_s(caller: Caller) -> float | None:
    ends, now = caller.next_end(), time.time()
    return None if ends is None else ends - now + _AFTER_S


def _ends(given: object) -> dict[str, int]:
    if not isinstance(given, dict) or not all(type(end) is int for end in given.values()):
        raise invalid("`ends` is not a table of offsets by session", "leave it out")
    return given
