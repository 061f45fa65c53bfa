"""Inbox rows in a real ledger: durable, numbered, ended once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from holdfast.host.inbox.items import Inbox
from holdfast.host.journal.ledger import Ledger
from holdfast.model import limits
from holdfast.model.errors import HoldfastError
from tests.support.home import until_async

ADA = {"operator": "op_1", "kind": "human", "name": "ada"}
BOT = {"operator": "op_2", "kind": "agent", "name": "bot"}


async def inbox(ledger: Ledger, heard: list[Any] | None = None) -> Inbox:
    made = Inbox(ledger, (heard if heard is not None else []).append)
    await made.load()
    return made


async def test_an_item_and_its_answer_survive_the_host(ledger: Ledger) -> None:
    first = await inbox(ledger)
    asked = await first.add("question", asker=BOT, text="Which?", options=["a", "b"])
    again = await inbox(ledger)
    assert [i["id"] for i in again.open_items()] == [asked["id"]]
    await again.end(asked["id"], "answer", by=ADA, answer="a", request="req_1")
    third = await inbox(ledger)
    assert third.open_items() == []
    found = await third.settled(asked["id"])
    assert (found["state"], found["answer"], found["answered_by"]) == ("answered", "a", ADA)


async def test_a_second_answer_is_a_conflict_and_the_same_request_is_not(ledger: Ledger) -> None:
    box = await inbox(ledger)
    asked = await box.add("question", asker=BOT, text="Which?")
    await box.end(asked["id"], "answer", by=ADA, answer="a", request="req_1")
    with pytest.raises(HoldfastError, match="ada"):
        await box.end(asked["id"], "answer", by=ADA, answer="b", request="req_2")
    assert (await box.end(asked["id"], "answer", by=ADA, answer="a", request="req_1"))["answer"] == "a"


async def test_of_many_answers_at_once_one_has_its_effect(ledger: Ledger) -> None:
    box = await inbox(ledger)
    asked = await box.add("question", asker=BOT, text="Which?")
    effects = []

    async def effect(item: dict[str, Any]) -> None:
        effects.append(item["id"])
        await asyncio.sleep(0)

    tries = [box.end(asked["id"], "answer", by=ADA, answer=str(n), effect=effect) for n in range(20)]
    ended = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(e, dict) for e in ended) == 1
    assert len(effects) == 1


async def test_an_effect_that_refuses_leaves_the_item_open(ledger: Ledger) -> None:
    box = await inbox(ledger)
    asked = await box.add("question", asker=BOT, text="Which?")

    async def refuse(item: dict[str, Any]) -> None:
        raise HoldfastError("conflict", "not now", "")

    with pytest.raises(HoldfastError, match="not now"):
        await box.end(asked["id"], "answer", by=ADA, answer="a", effect=refuse)
    assert (await box.find(asked["id"]))["state"] == "open"


async def test_changes_are_numbered_and_wake_whoever_follows(ledger: Ledger) -> None:
    heard: list[Any] = []
    box = await inbox(ledger, heard)
    asked = await box.add("question", asker=BOT, text="Which?")
    follower = asyncio.create_task(box.change(box.last))
    await asyncio.sleep(0)
    assert not follower.done()
    await box.end(asked["id"], "deny", by=ADA)
    await asyncio.wait_for(follower, 20)
    assert [i["state"] for i in await box.since(asked["changed"])] == ["denied"]
    assert [i["state"] for i in heard] == ["open", "denied"]


async def test_no_answer_in_time_is_an_end_also_while_no_host_ran(ledger: Ledger) -> None:
    box = await inbox(ledger)
    asked = await box.add("approval", asker=BOT, text="rm", timeout_s=0.05)
    assert (await asyncio.wait_for(box.settled(asked["id"]), 20))["state"] == "expired"
    late = await box.add("approval", asker=BOT, text="rm", timeout_s=0.05)
    box.close()
    over = time.time() + 0.05
    await until_async(lambda: time.time() > over)
    again = await inbox(ledger)
    assert (await asyncio.wait_for(again.settled(late["id"]), 20))["state"] == "expired"


async def test_the_same_request_finds_its_item_whatever_became_of_it(ledger: Ledger) -> None:
    box = await inbox(ledger)
    assert await box.by_request("exec:1") is None
    asked = await box.add("approval", asker=BOT, text="rm", request="exec:1")
    found = await box.by_request("exec:1")
    assert found is not None
    assert found["id"] == asked["id"]
    await box.end(asked["id"], "approve", by=ADA)
    found = await box.by_request("exec:1")
    assert found is not None
    assert found["state"] == "answered"


async def test_an_operator_has_so_many_open_items_and_no_more(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ASKS_OPEN_MAX", 3)
    box = await inbox(ledger)
    for _ in range(3):
        await box.add("question", asker=BOT, text="Which?")
    with pytest.raises(HoldfastError) as e:
        await box.add("question", asker=BOT, text="Which?")
    assert e.value.code == "busy"
    await box.add("question", asker=ADA, text="Which?")
    await box.add("input", text="name?")


async def test_what_is_over_is_kept_up_to_a_bound_and_what_is_open_always(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ASKS_CLOSED_KEPT", 3)
    box = await inbox(ledger)
    stays = await box.add("question", asker=BOT, text="first")
    for _ in range(6):
        made = await box.add("question", asker=BOT, text="Which?")
        await box.end(made["id"], "deny", by=ADA)
    kept = await box.since(0)
    assert len(kept) == 4
    assert kept[0]["id"] == stays["id"]


async def test_an_item_is_found_by_the_beginning_of_its_id(ledger: Ledger) -> None:
    box = await inbox(ledger)
    asked = await box.add("question", asker=BOT, text="Which?")
    assert (await box.find(asked["id"][:10]))["id"] == asked["id"]
    assert (await box.find(asked["id"][4:10]))["id"] == asked["id"]
    for wrong in ("ask_", "", "ask_nosuch", "nosuch"):
        with pytest.raises(HoldfastError) as e:
            await box.find(wrong)
        assert e.value.code == "not_found"


async def test_an_item_is_never_replaced_by_another_of_its_id(ledger: Ledger) -> None:
    box = await inbox(ledger)
    asked = await box.add("approval", asker=BOT, text="rm -rf /", request="exec:1")
    for more in ({"ask": asked["id"]}, {"request": "exec:1"}):
        with pytest.raises(HoldfastError) as e:
            await box.add("question", asker=ADA, text="Nice weather?", **more)
        assert e.value.code == "conflict"
    assert [i["text"] for i in box.open_items()] == ["rm -rf /"]
    assert (await (await inbox(ledger)).find(asked["id"]))["kind"] == "approval"


async def test_who_leaves_while_answering_leaves_no_half_answer(ledger: Ledger) -> None:
    """Memory and disk never differ: the answer is there or it is not."""
    box = await inbox(ledger)
    asked = await box.add("approval", asker=BOT, text="rm -rf /")
    answering = asyncio.create_task(box.end(asked["id"], "deny", by=ADA))
    waiting = asyncio.create_task(box.settled(asked["id"]))
    await asyncio.sleep(0)  # until it waits for the disk
    await asyncio.sleep(0)
    answering.cancel()
    assert (await asyncio.wait_for(waiting, 30))["state"] == "denied"
    with pytest.raises(HoldfastError, match="ada"):
        await box.end(asked["id"], "approve", by=ADA)
