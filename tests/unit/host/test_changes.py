"""Which sessions changed since a mark, and what a mark of another time is worth."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.host import changes
from holdfast.host.changes import Changes, news
from holdfast.host.ops import looking
from holdfast.host.ops.looking import Looking
from holdfast.model.errors import HoldfastError


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


async def test_what_happens_before_the_waiting_has_quite_begun_is_told_too() -> None:
    kept = Changes()
    waiting = asyncio.ensure_future(news(kept, kept.mark, {}))
    await asyncio.sleep(0)  # it has looked, and nothing that it waits for has run yet
    kept.note("ses_a")
    assert await asyncio.wait_for(waiting, 30) == {"ses_a"}


async def test_what_happens_in_the_moment_in_which_the_time_is_up_is_in_the_next_answer_at_the_latest() -> None:
    kept = Changes()
    registry = SimpleNamespace(changes=kept, sessions={})
    host: Any = SimpleNamespace(registry=registry, _shows=lambda session, caller: True)
    asked: Any = Looking.op_changed(host, {"after": kept.mark, "timeout": 0}, cast("Any", None))
    waiting = asyncio.ensure_future(asked)
    asyncio.get_running_loop().call_soon(kept.note, "ses_a")
    answer = await asyncio.wait_for(waiting, 30)
    assert "ses_a" in {*answer["sessions"], *(kept.since(answer["mark"]) or ())}


@pytest.mark.parametrize("given", [5, "ses_a", ["ses_a", 5], {"ses_a": 1}])
def test_what_is_no_list_of_sessions_is_refused_in_words(given: object) -> None:
    with pytest.raises(HoldfastError, match="not a list of ids"):
        looking._ids(given)
