"""Requests that stand in the inbox, with a real inbox and ledger, and a clock that is told what time it is."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.host.inbox.items import Inbox
from holdfast.host.inbox.standing_requests import Standing, kept
from holdfast.host.journal.ledger import Ledger
from holdfast.model import limits
from holdfast.model.errors import HoldfastError
from tests.support.home import until_async

Json = dict[str, Any]
ADA = {"operator": "op_1", "kind": "human", "name": "ada"}
BOT = {"operator": "op_2", "kind": "agent", "name": "bot"}
WHO: Json = {"operator": "op_2", "inside": None, "bound_by": []}
PLACE = {"session": "ses_1", "session_name": "sh", "generation": 1}
EXEC = {"op": "exec", "session": "sh", "words": ["git push"], "timeout": 1, "standing": True}
RULE_S = 60.0


class Host:
    """One host's life over a ledger: what it carried out, and what comes of that."""

    def __init__(self, ledger: Ledger, now: float = 1000.0) -> None:
        self.now, self.carried = now, list[str]()
        self.error: HoldfastError | None = None
        self.inbox = Inbox(ledger, lambda item: None, lambda: self.now)
        self.standing = Standing(self.inbox, self._carry_out, lambda: self.now)

    async def _carry_out(self, item: Json) -> Json | None:
        if self.error is not None:
            raise self.error
        self.carried.append(item["id"])
        return {"sent": 1}

    async def ask(self, **changed: Any) -> str:
        stands = kept({**EXEC, **changed}, WHO, PLACE)

        async def make() -> Json:
            return await self.inbox.add("approval", session=PLACE, asker=BOT, timeout_s=RULE_S, more={"stands": stands})

        return str(await self.standing.ask(stands, make))

    async def begin(self) -> Host:
        await self.inbox.load()
        await self.standing.begin()
        return self

    def die(self) -> None:
        self.standing.close()
        self.inbox.close()


def key(who: Json = WHO, place: Json = PLACE, **changed: Any) -> str:
    return str(kept({**EXEC, **changed}, who, place)["key"])


def test_what_only_a_call_has_makes_no_other_request() -> None:
    same = {key(), key(exec_id="exe_1"), key(why="because"), key(timeout=7), key(session="ses_1"), key(start_only=True)}
    assert len(same) == 1
    assert key(words=["git pull"]) not in same
    assert key(who={**WHO, "operator": "op_3"}) not in same
    assert key(place={**PLACE, "generation": 2}) not in same
    assert key(step=True, exec_id="exe_1") != key(step=True, exec_id="exe_2"), "a step has its command under its id"


def test_a_request_too_large_to_keep_is_refused() -> None:
    with pytest.raises(HoldfastError) as e:
        key(words=["x" * limits.STANDING_BYTES_MAX])
    assert e.value.hint


async def test_the_same_request_at_once_and_later_is_one_item(ledger: Ledger) -> None:
    host = await Host(ledger).begin()
    asks = set(await asyncio.gather(*(host.ask(why=str(n)) for n in range(5))))
    assert (len(asks), len(host.inbox.open_items())) == (1, 1)
    (ask,) = asks
    await host.inbox.end(ask, "approve", by=ADA)
    item = await host.standing.decided(ask, 60)
    assert (item["stands"]["outcome"], host.carried) == ({"sent": 1}, [ask])
    assert "words" not in item["stands"]["request"], "it is kept no longer than it is needed"
    assert await host.ask() == ask, "its asker has not heard of it"
    await host.standing.told(ask)
    assert await host.ask() != ask
    assert host.carried == [ask]
    host.die()


async def test_the_next_host_carries_out_what_was_approved_and_no_more(ledger: Ledger) -> None:
    first = await Host(ledger).begin()
    ask, done = await first.ask(), await first.ask(words=["git pull"])
    await first.inbox.end(done, "approve", by=ADA)
    await first.standing.decided(done, 60)
    first.die()
    await first.inbox.end(ask, "approve", by=ADA)  # and it died before it could begin
    second = await Host(ledger, now=1010.0).begin()
    await until_async(lambda: second.carried == [ask])
    assert await second.ask(words=["git pull"]) == done
    second.die()


async def test_a_yes_holds_as_long_as_the_question_would_have(ledger: Ledger) -> None:
    first = await Host(ledger).begin()
    ask = await first.ask()
    first.die()
    await first.inbox.end(ask, "approve", by=ADA)
    late = await Host(ledger, now=1000.0 + RULE_S + 1).begin()
    with pytest.raises(HoldfastError, match="could not begin in time"):
        await late.standing.decided(ask, 60)
    assert late.carried == []
    late.die()


async def test_an_outcome_that_nobody_came_for_is_no_answer_to_a_later_call(ledger: Ledger) -> None:
    host = await Host(ledger).begin()
    ask = await host.ask()
    await host.inbox.end(ask, "approve", by=ADA)
    await host.standing.decided(ask, 60)
    host.now += limits.OUTCOME_KEPT_S + 1
    assert await host.ask() != ask
    host.die()


async def test_a_no_and_a_failure_are_what_it_came_to(ledger: Ledger) -> None:
    host = await Host(ledger).begin()
    denied, failed = await host.ask(), await host.ask(words=["git pull"])
    await host.inbox.end(denied, "deny", by=ADA)
    with pytest.raises(HoldfastError, match="ada"):
        await host.standing.decided(denied, 60)
    host.error = HoldfastError("conflict", "sh has ended", "hold status")
    await host.inbox.end(failed, "approve", by=ADA)
    for standing in (host.standing, (await Host(ledger).begin()).standing):
        with pytest.raises(HoldfastError, match="sh has ended"):
            await standing.decided(failed, 60)
    assert host.carried == []
    host.die()


async def test_a_busy_shell_is_tried_again_until_the_yes_has_run_out(ledger: Ledger) -> None:
    host = await Host(ledger).begin()
    host.error = HoldfastError("busy", "sh is still running exe_1", "wait")
    ask, late = await host.ask(), await host.ask(words=["git pull"])
    await host.inbox.end(ask, "approve", by=ADA)
    assert not (await host.standing.decided(ask, 0.05))["stands"].get("done")
    host.error = None
    await host.standing.decided(ask, 60)
    assert host.carried == [ask]
    host.error = HoldfastError("busy", "sh is still running exe_1", "wait")
    await host.inbox.end(late, "approve", by=ADA)
    host.now += RULE_S
    with pytest.raises(HoldfastError, match="still running"):
        await host.standing.decided(late, 60)
    host.die()
