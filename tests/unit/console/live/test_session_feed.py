"""What a page asks the host to tell it of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.console.live import session_feed
from holdfast.console.live.session_feed import Feed

Json = dict[str, Any]


class Host:
    """One session that goes on and one that is over."""

    def __init__(self) -> None:
        self.asked: asyncio.Queue[Json] = asyncio.Queue()

    async def call(self, op: str, **request: Any) -> Any:
        if op == "ls":
            return [
                {"id": f"ses_{state}", "state": state, "output": {"end": 7}, "activity": None, "still": True}
                for state in ("live", "exited")
            ]
        if "after" in request:
            self.asked.put_nowait(request)
            await asyncio.Event().wait()
        return {"mark": "1", "subjects": None}


async def test_a_page_asks_about_all_that_it_shows_also_about_what_is_over_and_may_be_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_feed, "LIVE_LOOK_S", 0.0)
    host: Any = Host()
    feed = Feed(host, everything=True)
    feed.join()
    try:
        asked = await asyncio.wait_for(host.asked.get(), 30)
        assert asked["ends"] == {"ses_live": 7, "ses_exited": 7}
    finally:
        feed.leave()
