"""What happened since a mark, and what a mark of another time is worth."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.api import checking
from holdfast.api.change_feed import News as Ask
from holdfast.host.change_feed import feed
from holdfast.host.change_feed.feed import LIST, TASKS, News
from holdfast.host.change_feed.ops import FeedParts, news
from holdfast.model.errors import HoldfastError


def test_only_what_changed_after_a_mark_is_news() -> None:
    kept = News()
    kept.note("ses_a")
    mark = kept.mark
    assert kept.since(mark) == set()
    kept.note("ses_b")
    kept.note("ses_b")
    assert kept.since(mark) == {"ses_b"}
    kept.note("ses_a")
    assert kept.since(mark) == {"ses_a", "ses_b"}


def test_a_mark_of_another_host_or_of_nobody_means_that_everything_may_have_changed() -> None:
    kept = News()
    assert kept.since(News().mark) is None
    assert kept.since("") is None
    assert kept.since(kept.mark.partition(".")[0] + ".x") is None


def test_what_is_remembered_is_bounded() -> None:
    kept = News()
    early = kept.mark
    for n in range(feed._REMEMBERED_MAX):
        kept.note(f"ses_{n}")
    assert len(kept.since(early) or ()) == feed._REMEMBERED_MAX
    kept.note("ses_one_more")
    assert kept.since(early) is None


async def test_whoever_waits_is_told_once_something_happens() -> None:
    kept = News()
    waiting = asyncio.ensure_future(kept.more())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waiting.done()
    kept.note("ses_a")
    await asyncio.wait_for(waiting, 30)


def asked(kept: News, **request: Any) -> Any:
    """`news` of a host without sessions, of which the caller sees all."""
    seen = SimpleNamespace(link=None)
    parts = FeedParts(cast("Any", SimpleNamespace(sessions={"ses_a": seen})), kept)
    caller: Any = SimpleNamespace(next_end=lambda: None, may=lambda verb, session: True)
    return news(parts, caller, Ask(**{"of": "sessions", **request}))


async def test_what_happens_in_the_moment_in_which_the_time_is_up_is_in_the_next_answer_at_the_latest() -> None:
    kept = News()
    waiting = asyncio.ensure_future(asked(kept, after=kept.mark, timeout=0))
    asyncio.get_running_loop().call_soon(kept.note, "ses_a")
    answer = await asyncio.wait_for(waiting, 30)
    assert "ses_a" in {*answer["subjects"], *(kept.since(answer["mark"]) or ())}


async def test_tasks_and_sessions_are_not_news_of_each_other() -> None:
    kept = News()
    known = kept.mark
    kept.note("ses_a")
    tasks = await asked(kept, of="tasks", after=known, timeout=0)
    assert tasks["subjects"] == []
    kept.note(TASKS)
    assert (await asked(kept, of="tasks", after=tasks["mark"], timeout=0))["subjects"] == [TASKS]


async def test_the_end_of_a_grant_by_its_time_is_noted_while_somebody_waits() -> None:
    kept = News()
    known = kept.mark
    await asyncio.wait_for(kept.more(lapse_s=0.001), 30)
    assert kept.since(known) == {LIST}


@pytest.mark.parametrize("given", [5, "ses_a", ["ses_a", 5], {"ses_a": 1}])
def test_what_is_no_list_of_sessions_is_refused_in_words(given: object) -> None:
    with pytest.raises(HoldfastError, match="ls: sessions"):
        checking.request({"op": "ls", "sessions": given})
