"""A step whose body still runs in this process: not begun, verified or marked failed beside it; waited for instead."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest

import holdfast
from holdfast.client._async.host import AsyncHost
from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests, until

_DEADLINE_S = 60


class Bank:
    """`pay` begins, and ends when the test says so; `paid` looks."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.calls = self.payments = self.looks = 0

    def pay(self) -> int:
        self.calls += 1
        self.begun.set()
        assert self.go.wait(_DEADLINE_S)
        self.payments += 1
        return self.payments

    def paid(self) -> int | None:
        self.looks += 1
        return self.payments or None

    async def timed_out(self, run: Any) -> None:
        """A caller that waits for the payment, and stops waiting while the body runs."""
        caller = asyncio.create_task(run.step("pay", self.pay, effect="verifiable", verify=self.paid))
        assert await asyncio.to_thread(self.begun.wait, _DEADLINE_S)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller


async def test_a_body_that_outlives_its_callers_time_out_is_joined_and_paid_once(
    host: Host, hold: HomeForTests
) -> None:
    bank = Bank()
    async with AsyncHost(str(hold.path)) as mine, await mine.work.run() as run:
        caller = asyncio.create_task(run.step("pay", bank.pay, effect="verifiable", verify=bank.paid))
        assert await asyncio.to_thread(bank.begun.wait, _DEADLINE_S)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(caller, 0.1)
        assert (await run.status())["steps"] == {"done": 0, "open": 1, "failed": 0, "in_doubt": 0}
        again = asyncio.create_task(run.step("pay", bank.pay, effect="verifiable", verify=bank.paid))
        await asyncio.sleep(0.2)  # time in which it would look, and begin; nothing that could be waited for happens
        assert (again.done(), bank.looks) == (False, 0)
        bank.go.set()
        assert await again == 1
        assert (await run.status())["steps"] == {"done": 1, "open": 0, "failed": 0, "in_doubt": 0}
    assert (bank.calls, bank.payments, bank.looks) == (1, 1, 0)


async def test_a_run_that_is_closed_waits_for_a_body_under_way_and_keeps_its_outcome(
    host: Host, hold: HomeForTests
) -> None:
    bank = Bank()
    async with AsyncHost(str(hold.path)) as mine:
        run = await mine.work.run()
        await bank.timed_out(run)
        closing = asyncio.create_task(run.close())
        await asyncio.sleep(0.1)
        assert not closing.done()
        bank.go.set()
        await closing
        status = await mine.work.status(run.id)
        assert (status["steps"]["done"], status["leased"]) == (1, False)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that wait for a body only a moment when they are closed."""
    monkeypatch.setattr("holdfast.client._async.work.BODY_WAIT_S", 0.3)


@pytest.mark.usefixtures("impatient")
async def test_a_body_that_outlives_its_run_leaves_the_step_in_doubt_and_is_not_looked_at_before_it_ends(
    host: Host, hold: HomeForTests
) -> None:
    bank = Bank()
    async with AsyncHost(str(hold.path)) as mine:
        run = await mine.work.run(task="t")
        await bank.timed_out(run)
        await run.close()
        (doubt,) = (await mine.work.status(run.id))["in_doubt"]
        assert doubt["error"].startswith("the run was closed while its body still ran, in process ")
        second = await mine.work.run(task="t")
        assert (second.id, second.in_doubt) == (run.id, ["pay"])
        again = asyncio.create_task(second.step("pay", bank.pay, effect="verifiable", verify=bank.paid))
        await asyncio.sleep(0.2)
        assert (again.done(), bank.looks) == (False, 0)
        bank.go.set()
        assert await again == 1
        await second.finish()
    assert (bank.calls, bank.payments, bank.looks) == (1, 1, 1)


@pytest.mark.usefixtures("impatient")
async def test_an_idempotent_body_that_outlives_its_run_is_not_marked_failed(host: Host, hold: HomeForTests) -> None:
    bank = Bank()
    async with AsyncHost(str(hold.path)) as mine:
        run = await mine.work.run()
        caller = asyncio.create_task(run.step("pay", bank.pay, effect="idempotent"))
        assert await asyncio.to_thread(bank.begun.wait, _DEADLINE_S)
        caller.cancel()
        await run.close()
        assert (await mine.work.status(run.id))["steps"] == {"done": 0, "open": 0, "failed": 0, "in_doubt": 1}
        bank.go.set()
        async with await mine.work.run(run=run.id) as second:
            assert await second.step("pay", bank.pay, effect="idempotent") == 2  # after the first, not beside it


async def test_a_coroutine_that_is_cancelled_has_ended_and_is_looked_at_by_the_next_call(
    host: Host, hold: HomeForTests
) -> None:
    seen, begun = list[str](), asyncio.Event()

    async def pay() -> str:
        seen.append("body")
        begun.set()
        try:
            await asyncio.sleep(_DEADLINE_S)
        finally:
            seen.append("ended")
        return "sent"

    async with AsyncHost(str(hold.path)) as mine, await mine.work.run() as run:
        caller = asyncio.create_task(run.step("pay", pay, effect="verifiable"))
        await asyncio.wait_for(begun.wait(), _DEADLINE_S)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(caller, 0.1)
        assert seen == ["body", "ended"]
        assert (await run.status())["steps"]["in_doubt"] == 1
        assert await run.step("pay", pay, effect="verifiable", verify=lambda: "in the list") == "in the list"


async def test_a_caller_that_is_cancelled_while_an_outcome_is_written_does_not_lose_it(
    host: Host, hold: HomeForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pay() -> int:
        return 1

    async with AsyncHost(str(hold.path)) as mine, await mine.work.run() as run:
        writing, go, step = asyncio.Event(), asyncio.Event(), run._step

        async def slowly(name: str, args: dict[str, Any]) -> Any:
            if name in ("step_end", "step_next"):
                writing.set()
                await go.wait()
            return await step(name, args)

        monkeypatch.setattr(run, "_step", slowly)
        for caller in (run.step("one", pay), run.each("n", lambda item: item, [1, 2])):
            asked = asyncio.create_task(caller)
            await asyncio.wait_for(writing.wait(), _DEADLINE_S)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            go.set()
            assert await run.step("one", pay) == 1
            writing.clear()
            go.clear()
        go.set()
        assert await run.each("n", lambda item: item, [1, 2], effect="unsafe") == [1, 2]
        steps = {s["key"]: s["tries"] for s in await mine.work.call("step_ls", run=run.id)}
    assert steps["one"] == steps["n:1"] == 1


async def test_what_a_body_raises_reaches_every_caller_that_joined_it(host: Host, hold: HomeForTests) -> None:
    begun, go, calls = threading.Event(), threading.Event(), list[int]()

    def pay() -> None:
        calls.append(1)
        begun.set()
        assert go.wait(_DEADLINE_S)
        raise ConnectionError("the line went dead")

    async with AsyncHost(str(hold.path)) as mine:
        run = await mine.work.run()
        callers = [asyncio.create_task(run.step("pay", pay)) for _ in range(3)]
        assert await asyncio.to_thread(begun.wait, _DEADLINE_S)
        callers[0].cancel()
        other = asyncio.create_task(run.step("pay", pay, effect="idempotent"))
        await asyncio.sleep(0.1)
        go.set()
        with pytest.raises(asyncio.CancelledError):
            await callers[0]
        for caller in callers[1:]:
            with pytest.raises(ConnectionError):
                await caller
        with pytest.raises(holdfast.HoldfastError, match="begun with effect unsafe"):
            await other
        await run.close()
    assert calls == [1]


_ENDS = """
import asyncio, sys, threading
from holdfast.client._async.host import AsyncHost

begun, go = threading.Event(), threading.Event()

def body():
    begun.set()
    go.wait(60)
    return 7

async def main():
    run = await AsyncHost(sys.argv[1]).work.run()
    print(run.id)
    asyncio.create_task(run.step("slow", body))
    await asyncio.to_thread(begun.wait, 60)
    threading.Timer(0.3, go.set).start()

asyncio.run(main())
"""


def test_an_event_loop_that_ends_does_not_lose_the_outcome_of_a_body_on_a_thread(
    host: Host, hold: HomeForTests
) -> None:
    words = [sys.executable, "-c", _ENDS, str(hold.path)]
    ran = subprocess.run(words, env=hold.env, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    (step,) = host.work.call("step_ls", run=ran.stdout.strip())
    assert (step["state"], step["result"]) == ("done", 7)


def test_a_second_thread_joins_the_first_and_verifies_nothing(host: Host) -> None:
    bank = Bank()
    with host.work.run() as run, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(run.step, "pay", bank.pay, effect="verifiable", verify=bank.paid) for _ in range(4)]
        assert bank.begun.wait(_DEADLINE_S)
        assert run.status()["steps"]["open"] == 1
        bank.go.set()
        assert [one.result(_DEADLINE_S) for one in asked] == [1, 1, 1, 1]
    assert (bank.calls, bank.looks) == (1, 0)


def test_a_run_that_is_finished_waits_for_the_steps_of_other_threads(host: Host) -> None:
    bank = Bank()
    run = host.work.run()
    with ThreadPoolExecutor(2) as pool:
        paying = pool.submit(run.step, "pay", bank.pay)
        assert bank.begun.wait(_DEADLINE_S)
        finishing = pool.submit(run.finish)
        assert wait([finishing], 0.1).not_done
        bank.go.set()
        assert paying.result(_DEADLINE_S) == 1
        finishing.result(_DEADLINE_S)
    assert host.work.status(run.id)["state"] == "done"


def test_a_body_that_calls_its_own_step_is_told_so_instead_of_waiting_for_itself(host: Host) -> None:
    with host.work.run() as run:
        with pytest.raises(holdfast.HoldfastError, match="called by its own body") as refused:
            run.step("a", lambda: run.step("a", len, ""), effect="idempotent")
        assert refused.value.code == "conflict"
        assert run.step("a", lambda: run.step("b", len, ""), effect="idempotent") == 0


async def test_a_batch_that_is_cancelled_keeps_what_runs_and_begins_nothing_more(
    host: Host, hold: HomeForTests
) -> None:
    begun, go, seen = threading.Event(), threading.Event(), list[int]()

    def body(item: int) -> int:
        seen.append(item)
        if item == 2 and not go.is_set():
            begun.set()
            assert go.wait(_DEADLINE_S)
        return item

    async with AsyncHost(str(hold.path)) as mine, await mine.work.run() as run:
        batch = asyncio.create_task(run.each("n", body, [1, 2, 3]))
        assert await asyncio.to_thread(begun.wait, _DEADLINE_S)
        batch.cancel()
        with pytest.raises(asyncio.CancelledError):
            await batch
        go.set()

        def two() -> bool:
            return {s["key"]: s["state"] for s in host.work.call("step_ls", run=run.id)} == {
                "n:1": "done",
                "n:2": "done",
            }

        await asyncio.to_thread(until, two, timeout=_DEADLINE_S)
        assert await run.each("n", body, [1, 2, 3]) == [1, 2, 3]
    assert seen == [1, 2, 3]


async def test_two_batches_over_the_same_items_do_each_once(host: Host, hold: HomeForTests) -> None:
    seen: list[int] = []

    async def body(item: int) -> int:
        seen.append(item)
        await asyncio.sleep(0.001)
        return item

    items = list(range(12))
    async with AsyncHost(str(hold.path)) as mine, await mine.work.run() as run:
        batches = [run.each("n", body, order) for order in (items, items, items[::-1])]
        one, two, three = await asyncio.gather(*batches)
    assert (one, two, three) == (items, items, items[::-1])
    assert sorted(seen) == items
