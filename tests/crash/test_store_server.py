"""The database server goes away and comes back, and a worker is stopped in the worst place."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.store.postgres import PostgresStore
from holdfast.testing.store import refused
from holdfast.testing.work import working
from holdfast.work.service import Work
from tests.support.home import until
from tests.support.postgres import Server


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def server(own_server: Server) -> Server:
    """One of these tests' own: it is taken down. Up again for each."""
    if not own_server.running:
        own_server.start()
    return own_server


async def test_a_restart_in_the_middle_of_work_is_waited_out_with_a_message_and_nothing_is_lost_or_doubled(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    url = server.url()
    async with working(url) as work:
        made = await work.begin_run(worker="w", ttl_s=600)
        mine = {"run": made["run"], "epoch": made["epoch"]}
        acknowledged: list[int] = []
        grown = asyncio.Event()
        going = True

        async def caller(which: int) -> None:
            n = 0
            while going:
                await work.step_begin(key=f"{which}:{n}", effect="unsafe", **mine)
                await work.step_end(key=f"{which}:{n}", result=n, **mine)
                acknowledged.append((await work.log_append(body=[which, n], **mine))["seq"])
                grown.set()
                n += 1

        async def some_more() -> None:
            count = len(acknowledged)
            async with asyncio.timeout(60):
                while len(acknowledged) < count + 20:
                    grown.clear()
                    await grown.wait()

        with caplog.at_level(logging.WARNING, "holdfast.store"):
            callers = [asyncio.create_task(caller(n)) for n in range(4)]
            for how in ("fast", "immediate"):
                await some_more()
                await asyncio.to_thread(server.stop, how)
                server.start()
            await some_more()
            going = False
            await asyncio.gather(*callers)
        texts = [r.getMessage() for r in caplog.records if r.name == "holdfast.store"]
        assert any("went away" in t and "waiting" in t for t in texts)
        assert any("is back" in t for t in texts)
        assert not any("secret" in t for t in texts)
        status = await work.run_status(run=made["run"])
        assert status["steps"]["open"] == status["steps"]["in_doubt"] == 0
        entries: list[dict[str, Any]] = []
        while page := await work.log_read(run=made["run"], after=entries[-1]["seq"] if entries else 0):
            entries += page
        notes = [(e["seq"], tuple(e["body"])) for e in entries if e["kind"] == "note"]
        assert {seq for seq, _ in notes} == set(acknowledged)
        assert len({body for _, body in notes}) == len(notes) == len(acknowledged)


async def test_a_server_that_stays_away_is_told_in_the_end(server: Server) -> None:
    store = await PostgresStore.open(server.url(), wait_s=0.3)
    work = Work(store)
    await work.run_ls()
    await asyncio.to_thread(server.stop)
    with refused("store_unreachable") as seen:
        await work.run_ls()
    assert "secret" not in seen[0].line()
    server.start()
    assert await work.run_ls() == []
    await store.close()


async def test_a_commit_whose_answer_was_lost_is_recognised_and_not_applied_again(server: Server) -> None:
    async with working(server.url()) as work:
        made = await work.begin_run(worker="w")
        store = work.store
        assert isinstance(store, PostgresStore)
        plain, lost = store._once, 0

        async def losing(connection, transaction, begin):
            nonlocal lost
            value = await plain(connection, transaction, begin)
            if lost < 3:
                lost += 1
                raise ConnectionResetError("the answer did not come")
            lost = 0
            return value

        store._once = losing  # type: ignore[method-assign]
        mine = {"run": made["run"], "epoch": made["epoch"]}
        assert (await work.step_begin(key="k", **mine))["decision"] == "execute"
        assert (await work.step_end(key="k", result=1, **mine))["state"] == "done"
        seq = (await work.log_append(body="x", **mine))["seq"]
        again = await work.begin_run(task="t", worker="w")
        assert (again["epoch"], again["n"], again["resumed"]) == (1, 1, False)
        await work.run_end(**mine)
        store._once = plain  # type: ignore[method-assign]
        kinds = [e["kind"] for e in await work.log_read(run=made["run"])]
        assert kinds == ["run", "action", "observation", "note", "run"]
        assert seq == 4


async def test_a_step_that_goes_as_foreseen_is_one_statement_and_one_whose_answer_is_lost_is_not_done_twice(
    server: Server,
) -> None:
    async with working(server.url()) as work:
        store = work.store
        assert isinstance(store, PostgresStore)
        made = await work.begin_run(worker="w", ttl_s=600)
        mine: dict[str, Any] = {"run": made["run"], "epoch": made["epoch"]}
        once, quickly, transactions = store._once, store.quick, 0

        async def counted(*args: Any) -> Any:
            nonlocal transactions
            transactions += 1
            return await once(*args)

        store._once = counted  # type: ignore[method-assign, assignment]
        await work.call("step_begin", key="a", args=[1], **mine)
        await work.call("step_next", ended={"key": "a", "request": "r", "result": 1}, key="b", **mine)
        await work.call("step_end", key="b", result=2, **mine)
        await work.call("step_end", key="c", effect="none", result=3, **mine)
        assert transactions == 0

        async def lost(quick: Any) -> bool:
            assert await quickly(quick)
            return False  # what the store makes of a connection that broke after the commit

        store.quick = lost  # type: ignore[method-assign]
        assert (await work.call("step_begin", key="d", **mine))["decision"] == "execute"
        ended = {"key": "d", "request": "r2", "result": 4}
        assert (await work.call("step_next", ended=ended, key="e", **mine))["decision"] == "execute"
        await work.call("step_end", key="e", result=5, **mine)
        assert transactions == 3
        steps = {s["key"]: (s["state"], s["result"], s["tries"]) for s in await work.step_ls(run=made["run"])}
        assert steps == {key: ("done", n, 1) for n, key in enumerate("abcde", 1)}
        assert [e["seq"] for e in await work.log_read(run=made["run"])] == list(range(1, 11))


STOPPED = """
import asyncio, os, signal, sys
from holdfast.store import postgres
from holdfast.store.open import open_store
from holdfast.work.service import Work
postgres._SETTINGS["idle_in_transaction_session_timeout"] = "1000"  # the test's patience, not the product's

async def main(url, run, epoch):
    store = await open_store(url)
    plain = store._execute
    async def execute(connection, query):
        rows = await plain(connection, query)
        if "FOR UPDATE" in postgres.translate(query.sql):
            os.kill(os.getpid(), signal.SIGSTOP)  # with the row lock in hand
        return rows
    store._execute = execute
    try:
        await Work(store).log_append(run=run, body="late", epoch=epoch)
        print("written", flush=True)
    except Exception as e:
        print(e.code, flush=True)

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def test_a_worker_stopped_with_the_row_lock_in_hand_does_not_stop_the_standby_and_is_fenced(
    server: Server,
) -> None:
    url = server.url()
    async with working(url) as work:
        made = await work.begin_run(worker="w1", ttl_s=600)
        words = [sys.executable, "-c", STOPPED, url, made["run"], str(made["epoch"])]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as stopped:
            try:
                assert await asyncio.to_thread(_stopped, stopped.pid)
                taken = await work.begin_run(run=made["run"], worker="w1")  # waits for the lock, not for the worker
                assert taken["epoch"] == made["epoch"] + 1
                os.kill(stopped.pid, signal.SIGCONT)
                while await asyncio.to_thread(_stopped, stopped.pid):
                    os.kill(stopped.pid, signal.SIGCONT)  # it stops itself at each lock it gets: on, to its end
                assert stopped.stdout
                assert stopped.stdout.read() == "fenced\n"
            finally:
                stopped.kill()
        assert "late" not in [entry["body"] for entry in await work.log_read(run=made["run"])]


def _stopped(pid: int) -> bool:
    """Until the kernel says that it is stopped; false when it has ended."""

    def state() -> str:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    return bool(until(lambda: (now := state()) in "TZ" and now, 60) == "T")
