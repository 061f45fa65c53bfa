"""`news`: the operation by which a caller hears of what happened, and of nothing that it may not see."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...api.change_feed import News
from ..operators.caller import Caller
from ..sessions.keeper_link import KeeperLink
from ..sessions.registry import Registry
from . import feed
from .feed import LIST, TASKS, listing

Json = dict[str, Any]
Subjects = set[str] | None  # None is whatever there is
SESSIONS = "sessions"
_AFTER_S = 0.001  # a grant ends by the clock on the wall, a wait by another: looked at a little later, it is over


class FeedParts(NamedTuple):
    """What the handler here uses of the host."""

    registry: Registry
    news: feed.News

    def shows(self, session_id: str, caller: Caller) -> bool:
        session = self.registry.sessions.get(session_id)
        return session is not None and caller.may("view", session)

    def hidden(self, ends: dict[str, int], caller: Caller) -> set[str]:
        return {id for id in ends if not self.shows(id, caller)}

    def printing(self, ends: dict[str, int]) -> Iterator[tuple[KeeperLink, int]]:
        return ((link, end) for id, end in ends.items() if (link := self.link(id)) is not None)

    def link(self, session_id: str) -> KeeperLink | None:
        session = self.registry.sessions.get(session_id)
        return None if session is None else session.link


@News.answered
async def news(parts: FeedParts, caller: Caller, request: News) -> Json:
    """An answer comes when something happened after `after`, or the time is up; without a mark it comes at once.

    sessions    to which of them something happened, or which printed more than `ends` says, by id. Those in `ends`
                that the caller does not see (any more) are told at once, whatever becomes of them
    list        whether there are other sessions to see, or under other names
    tasks       whether one was changed through this host
    """
    mark = request.after
    ends = (request.ends or {}) if request.of == SESSIONS else {}
    found: Subjects = set()
    hidden = parts.hidden(ends, caller)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(request.timeout):
            while True:
                mark, found = _after(parts, mark, request.of, ends, caller)
                if found is None or (found := found | hidden):
                    break
                await parts.news.more(parts.printing(ends), _lapse_s(caller))
    return {"mark": mark, "subjects": None if found is None else sorted(found)}


def _after(parts: FeedParts, mark: str, of: str, ends: dict[str, int], caller: Caller) -> tuple[str, Subjects]:
    """The mark as of now, and what is news to this caller since the given one."""
    now, since = parts.news.mark, parts.news.since(mark)
    if of == TASKS:
        return now, since and since & {TASKS}
    if of == LIST:
        known = mark.rpartition(".")[2]
        same = since is not None and LIST not in since
        seen = known if same else listing(parts.registry.sessions.values(), caller)
        return f"{now}.{seen}", set() if seen == known else {LIST}
    if since is None:
        return now, None
    hidden = parts.hidden(ends, caller) if LIST in since else set()
    printed = {id for id, end in ends.items() if (link := parts.link(id)) is not None and link.end > end}
    return now, {id for id in since if parts.shows(id, caller)} | hidden | printed


def _lapse_s(caller: Caller) -> float | None:
    ends, now = caller.next_end(), time.time()
    return None if ends is None else ends - now + _AFTER_S
