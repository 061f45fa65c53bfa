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

from holdfast.model.errors import HoldfastError
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres_connection import Away, Connection
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


def losing(connection: type[Connection], monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """The answers to so many commits in a row do not come; then one does. How many were lost."""
    plain, lost = connection.ask, [0]

    def ask(self: Connection, queries: Any) -> Any:
        rows = plain(self, queries)
        if any(q.sql == "COMMIT" or (q.sql.startswith("WITH held") and "INSERT" in q.sql) for q in queries):
            if lost[0] % (times + 1) < times:
                lost[0] += 1
                raise Away("the answer did not come")
            lost[0] += 1
        return rows

    monkeypatch.setattr(connection, "ask", ask)
    return lost


async def test_a_commit_whose_answer_was_lost_is_recognised_and_not_applied_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(server.url()) as work:
        made = await work.begin_run(worker="w")
        lost = losing(Connection, monkeypatch, 3)
        mine = {"run": made["run"], "epoch": made["epoch"]}
        assert (await work.step_begin(key="k", **mine))["decision"] == "execute"
        assert (await work.step_end(key="k", result=1, **mine))["state"] == "done"
        seq = (await work.log_append(body="x", **mine))["seq"]
        again = await work.begin_run(task="t", worker="w")
        assert (again["epoch"], again["n"], again["resumed"]) == (1, 1, False)
        await work.run_end(**mine)
        assert lost[0] >= 5 * 4
        monkeypatch.undo()
        kinds = [e["kind"] for e in await work.log_read(run=made["run"])]
        assert kinds == ["run", "action", "observation", "note", "run"]
        assert seq == 4


async def test_a_step_on_remembered_rows_is_one_statement_and_one_whose_answer_is_lost_is_not_done_twice(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(server.url()) as work:
        made = await work.begin_run(worker="w", ttl_s=600)
        mine: dict[str, Any] = {"run": made["run"], "epoch": made["epoch"]}
        plain, said = Connection.ask, list[int]()

        def counted(self: Connection, queries: Any) -> Any:
            said.append(len(queries))
            return plain(self, queries)

        await work.call("step_begin", key="a", args=[1], **mine)
        monkeypatch.setattr(Connection, "ask", counted)
        await work.call("step_next", ended={"key": "a", "request": "r", "result": 1}, key="b", **mine)
        await work.call("step_end", key="b", result=2, **mine)
        await work.call("step_end", key="c", effect="none", result=3, **mine)
        assert said == [1, 1, 1]  # one message of one statement each
        monkeypatch.undo()
        losing(Connection, monkeypatch, 1)
        assert (await work.call("step_begin", key="d", **mine))["decision"] == "execute"
        ended = {"key": "d", "request": "r2", "result": 4}
        assert (await work.call("step_next", ended=ended, key="e", **mine))["decision"] == "execute"
        await work.call("step_end", key="e", result=5, **mine)
        monkeypatch.undo()
        steps = {s["key"]: (s["state"], s["result"], s["tries"]) for s in await work.step_ls(run=made["run"])}
        assert steps == {key: ("done", n, 1) for n, key in enumerate("abcde", 1)}
        assert [e["seq"] for e in await work.log_read(run=made["run"])] == list(range(1, 11))


async def _steps(work: Work, mine: dict[str, Any], name: str, begun: asyncio.Event, done: list[str]) -> str:
    for n in range(25):
        try:
            await work.call("step_begin", key=f"{name}{n}", **mine)
            await work.call("step_end", key=f"{name}{n}", result=n, **mine)
        except HoldfastError as e:
            return e.code
        done.append(f"{name}{n}")
        begun.set()
    return "all"


async def test_hosts_that_race_for_a_run_leave_no_hole_and_nothing_after_a_takeover(server: Server) -> None:
    """Each remembers rows that the others have changed."""
    url, rounds = server.url(), 6
    stores = [await PostgresStore.open(url) for _ in range(4)]
    first, hosts = Work(stores[0], "b"), [Work(store, "b") for store in stores[1:]]
    for _ in range(rounds):
        made = await first.begin_run(worker="w", ttl_s=3600)
        mine = {"run": made["run"], "epoch": made["epoch"]}
        begun, done = asyncio.Event(), list[str]()

        workers = [
            asyncio.create_task(_steps(work, mine, name, begun, done)) for work, name in zip(hosts, "xyz", strict=True)
        ]
        await begun.wait()
        taken = await first.begin_run(run=made["run"], worker="w", ttl_s=3600)
        assert set(await asyncio.gather(*workers)) <= {"fenced", "all"}
        log = await first.log_read(run=made["run"])
        assert [e["seq"] for e in log] == list(range(1, len(log) + 1))
        epochs = [e["epoch"] for e in log]
        after = epochs.index(taken["epoch"])
        assert set(epochs[after:]) == {taken["epoch"]}
        states = {s["key"]: s["state"] for s in await first.step_ls(run=made["run"])}
        assert {states[key] for key in done} <= {"done"}
        assert set(states.values()) <= {"done", "in_doubt"}
    for store in stores:
        await store.close()


STOPPED = """
import asyncio, signal, sys, threading
from holdfast.store import postgres_connection as connections
from holdfast.store.open import open_store
from holdfast.work.service import Work
connections.SETTINGS["idle_in_transaction_session_timeout"] = "1000"  # the test's patience, not the product's

async def main(url, run, epoch):
    store = await open_store(url)
    plain = connections.Connection.ask
    def ask(self, queries):
        rows = plain(self, queries)
        if any("{for_update}" in q.sql for q in queries):
            # With the row lock in hand; sent to this thread, which else might go on for a moment.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        return rows
    connections.Connection.ask = ask
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
