"""Which sessions changed since a mark, and what a mark of another time is worth."""

from __future__ import annotations

import asyncio

from holdfast.host import changes
from holdfast.host.changes import Changes, news


def test_only_what_changed_after_a_mark_is_news() -> None:
    kept = Changes()
    kept.note("ses_a")
    mark = kept.mark
    assert kept.since(mark) == set()
    kept.note("ses_b")
    kept.note("ses_b")
    assert kept.since(mark) == {"ses_b"}
    kept.note("ses_a")
    assert kept.since(mark) == {"ses_a", "ses_b"}


def test_a_mark_of_another_host_or_of_nobody_means_that_everything_may_have_changed() -> None:
    kept = Changes()
    assert kept.since(Changes().mark) is None
    assert kept.since("") is None
    assert kept.since(kept.mark.partition(".")[0] + ".x") is None


def test_what_is_remembered_is_bounded() -> None:
    kept = Changes()
    early = kept.mark
    for n in range(changes._REMEMBERED_MAX):
        kept.note(f"ses_{n}")
    assert len(kept.since(early) or ()) == changes._REMEMBERED_MAX
    kept.note("ses_one_more")
    assert kept.since(early) is None


async def test_whoever_waits_is_told_once_something_happens() -> None:
    kept = Changes()
    waiting = asyncio.ensure_future(news(kept, kept.mark, {}))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    kept.note("ses_a")
    assert await asyncio.wait_for(waiting, 30) == {"ses_a"}
