"""Items that are there as long as somebody waits for them, items taken back, and the reason that comes with an answer."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from typing import Any

import pytest

from holdfast.client._async.host import AsyncHost
from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, until
from tests.support.operators import acting_as, enrol, journal


def open_items(hold: HomeForTests) -> list[Any]:
    items: list[Any] = hold.host.call("inbox")["items"]
    return items


class Waiting:
    """Somebody who waits for an answer in a thread."""

    def __init__(self, host: Host, **options: Any) -> None:
        self.answer: Any = None
        self.thread = threading.Thread(target=self._wait, args=(host, options), daemon=True)
        self.thread.start()

    def _wait(self, host: Host, options: dict[str, Any]) -> None:
        try:
            self.answer = host.ask_held("may I?", **options)
        except HoldfastError as e:
            self.answer = e
        finally:
            host.close()

    def end(self) -> Any:
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.answer


@pytest.mark.parametrize(("words", "state"), [(["--approve"], "answered"), (["--deny"], "denied")])
def test_an_approval_that_was_asked_for_comes_back_with_its_reason(
    hold: HomeForTests, words: list[str], state: str
) -> None:
    enrol(hold, "bot")
    waiting = Waiting(acting_as(hold, "bot"), kind="approval", wait=60)
    item = until(lambda: open_items(hold), 40)[0]
    assert hold("answer", item["id"], *words, "--why", "because").code == 0
    done = waiting.end()
    assert (done["state"], done["answer_why"], done["asker"]["name"]) == (state, "because", "bot")
    assert [e["ask_kind"] for e in journal(hold, "ask")] == ["approval"]


def test_a_wait_that_is_over_leaves_nothing_to_answer(hold: HomeForTests) -> None:
    done = hold.host.ask_held("quick?", wait=0.1)
    assert done["state"] == "gone"
    assert open_items(hold) == []
    assert hold("answer", done["id"], "yes").code == 5
    assert journal(hold, "deny") == [], "nobody said no"


def test_only_its_asker_takes_an_item_back(hold: HomeForTests) -> None:
    enrol(hold, "bot")
    bot = acting_as(hold, "bot")
    item = bot.ask("which?").id
    with pytest.raises(HoldfastError) as e:
        hold.host.withdraw(item)
    assert e.value.code == "not_allowed"
    assert bot.withdraw(item)["state"] == "gone"
    assert bot.withdraw(item)["state"] == "gone"
    answered = bot.ask("which?").id
    hold.host.answer(answered, "this")
    assert bot.withdraw(answered)["answer"] == "this", "what is over stays as it is"
    bot.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "secret"},
        {"kind": "control_request"},
        {"kind": 7},
        {"held": "long"},
        {"held": []},
        {"held": {}},
    ],
)
@pytest.mark.home("file")
def test_what_cannot_be_asked_for_is_refused(hold: HomeForTests, wrong: dict[str, Any]) -> None:
    with pytest.raises(HoldfastError) as e:
        hold.host.call("ask", text="x", **wrong)
    assert e.value.code in ("invalid", "usage")
    assert open_items(hold) == []


async def test_an_asker_that_leaves_while_its_item_is_written_down_leaves_no_item(hold: HomeForTests) -> None:
    asker = AsyncHost(str(hold.path))
    await asker.call("ping")
    db = sqlite3.connect(hold.path / "host.db", isolation_level=None, timeout=60)
    try:
        db.execute("BEGIN IMMEDIATE")  # what the host writes down waits for us
        asking = asyncio.ensure_future(asker.ask_held("may I?", wait=600, kind="approval"))
        for _ in range(20):  # by then the host has begun with it, which nothing can show while it may not write
            await asyncio.to_thread(hold.host.call, "ping")
        asking.cancel()
        asker.close()
        await asyncio.to_thread(hold.host.call, "ping")
    finally:
        db.close()
    other = (await asyncio.to_thread(hold.host.ask, "and I?")).id  # written after it
    await asyncio.to_thread(until, lambda: [i["id"] for i in open_items(hold)] == [other], 60)
