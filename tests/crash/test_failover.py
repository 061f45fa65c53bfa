"""A long migration whose workers are killed, stopped and cut off: a standby finishes it, and each batch moves once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests, until
from tests.support.postgres import Server
from tests.support.soak import Rounds
from tests.support.workers import DEADLINE_S, Crew, Table

BATCHES = 150


@pytest.fixture(params=["sqlite", "postgres"])
def table(request: pytest.FixtureRequest, hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    """What is to be moved; with PostgreSQL, the work is kept there too, and no host takes part."""
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    if request.param == "sqlite":
        return Table(str(tmp_path / "shop.db"), BATCHES)
    server: Server = request.getfixturevalue("postgres")
    hold.env["HOLDFAST_STORE"] = server.url()
    monkeypatch.setenv("HOLDFAST_STORE", hold.env["HOLDFAST_STORE"])
    return Table(server.url(), BATCHES)


@pytest.fixture
def crew(hold: HomeForTests, table: Table, tmp_path: Path) -> Iterator[Crew]:
    made = Crew(hold, table, tmp_path)
    yield made
    made.close()


@pytest.fixture
def host(hold: HomeForTests, table: Table) -> Iterator[Host]:
    with Host(str(hold.path)) as made:
        yield made


def submit(host: Host, table: Table) -> str:
    return host.work.submit("migrate", {"database": table.database}, [str(n) for n in range(table.batches)])


def holder(host: Host, crew: Crew, run: str):
    """The live worker that holds the run, once it does."""
    return crew.named(host.work.status(run)["worker"])


def finished(host: Host, crew: Crew, run: str) -> bool:
    crew.refill()
    return bool(host.work.status(run)["state"] != "active")


def moved(table: Table, after: int) -> bool:
    return table.moved() >= after


def reached(host: Host, crew: Crew, table: Table, run: str, after: int) -> bool:
    return finished(host, crew, run) or moved(table, after)


def check(host: Host, run: str, table: Table) -> dict:
    status = host.work.status(run)
    assert (status["state"], status["steps"]["in_doubt"], status["steps"]["open"]) == ("done", 0, 0)
    assert len(status["items"]["done"]) == table.batches
    assert status["outcome"] == {"rows": table.batches * 100}
    table.check()
    return status


def test_workers_killed_at_random_moments_are_replaced_and_each_batch_is_moved_exactly_once(
    host: Host, crew: Crew, table: Table, rounds: Rounds
) -> None:
    chance, kills = rounds.random, min(rounds.count(1), BATCHES // 2)
    crew.add().ready()
    crew.add("--standby").ready()
    run = submit(host, table)
    for after in sorted(chance.sample(range(table.batches), kills)):
        until(partial(reached, host, crew, table, run, after), timeout=DEADLINE_S, pause=0.002)
        victim = until(lambda: finished(host, crew, run) or holder(host, crew, run), timeout=DEADLINE_S)
        time.sleep(chance.uniform(0, 0.02))  # the moment is the point: anywhere in a step, or between two
        victim.signal(signal.SIGKILL)
        victim.wait()
    crew.go()
    until(lambda: finished(host, crew, run), timeout=DEADLINE_S, pause=0.1)
    status = check(host, run, table)
    assert status["epoch"] > kills
    log = host.work.call("log_read", run=run)
    assert sum(e["body"].get("event") == "takeover" for e in log if e["kind"] == "run") >= 1


def test_a_worker_stopped_at_a_random_moment_wakes_up_fenced_and_writes_nothing(
    host: Host, crew: Crew, table: Table, rounds: Rounds
) -> None:
    chance = rounds.random
    first = crew.add().ready()
    run = submit(host, table)
    after = chance.randrange(table.batches)
    until(lambda: holder(host, crew, run), timeout=DEADLINE_S)  # one that has not begun cannot be fenced
    until(lambda: table.moved() >= after, timeout=DEADLINE_S, pause=0.002)
    first.signal(signal.SIGSTOP)
    crew.add("--standby").ready()
    until(lambda: host.work.status(run)["epoch"] >= 2, timeout=DEADLINE_S)
    before = [s for s in host.work.call("step_ls", run=run) if s["epoch"] == 1]
    crew.go()
    first.signal(signal.SIGCONT)
    assert first.wait() == 5, first.said
    (line,) = [line for line in first.said.splitlines() if line.startswith("hold:")]
    assert line.startswith("hold: fenced: ")
    until(lambda: finished(host, crew, run), timeout=DEADLINE_S, pause=0.1)
    check(host, run, table)
    assert {s["key"] for s in host.work.call("step_ls", run=run) if s["epoch"] == 1} <= {s["key"] for s in before}


def test_a_worker_stopped_inside_a_steps_body_cannot_move_the_batch_after_the_standby_did(
    host: Host, hold: HomeForTests, table: Table, tmp_path: Path
) -> None:
    mark = str(tmp_path / "stopped")
    stop = f"if batch == 7 and not os.path.exists({mark!r}): open({mark!r}, 'w').close(); os.kill(os.getpid(), signal.SIGSTOP)"
    crew = Crew(hold, table, tmp_path, before=stop)
    try:
        first = crew.add().ready()
        run = submit(host, table)
        until(lambda: os.path.exists(mark), timeout=DEADLINE_S)
        second = crew.add("--standby").ready()
        until(lambda: finished(host, crew, run), timeout=DEADLINE_S, pause=0.1)
        assert f"goes on from {first.name} under epoch 2" in second.said
        first.signal(signal.SIGCONT)
        assert first.wait() == 5, first.said
        assert "hold: fenced: the database knows a newer worker than epoch 1" in first.said
        step = host.work.call("step_find", run=run, key="move:7")
        assert (step["state"], step["tries"]) == ("done", 2)
        check(host, run, table)
    finally:
        crew.close()


def test_a_worker_that_is_asked_to_stop_gives_its_run_back_between_two_steps(
    host: Host, crew: Crew, table: Table
) -> None:
    first = crew.add("--lease", "10m").ready()
    run = submit(host, table)
    until(lambda: table.moved() >= 3, timeout=DEADLINE_S, pause=0.002)
    first.signal(signal.SIGTERM)
    crew.go()
    assert first.wait() == 0, first.said
    status = host.work.status(run)
    if status["state"] == "active":  # else the last batch was the one under way
        assert f"migrate {run}: given back" in first.said
        assert (status["leased"], status["in_doubt"]) == (False, [])
    crew.add("--standby", "--lease", "10m")  # it does not wait for a lease: there is none
    until(lambda: host.work.status(run)["state"] != "active", timeout=DEADLINE_S, pause=0.1)
    assert not [s for s in host.work.call("step_ls", run=run) if s["tries"] > 1]
    check(host, run, table)


def test_a_host_killed_under_its_workers_is_not_noticed(hold: HomeForTests, tmp_path: Path) -> None:
    table = Table(str(tmp_path / "shop.db"), 40)
    crew = Crew(hold, table, tmp_path)
    try:
        run = submit(hold.host, table)
        worker = crew.add("--once", "--lease", "10m")
        for after in (5, 20):
            until(partial(moved, table, after), timeout=DEADLINE_S, pause=0.002)
            hold.kill_daemon()
        crew.go()
        assert worker.wait() == 0, worker.said
        assert check(hold.host, run, table)["epoch"] == 1
    finally:
        crew.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[Server]:
    """One of these tests' own: it is taken down."""
    made = Server()
    yield made
    made.close()


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_restart_of_postgresql_in_the_middle_of_work_is_waited_out_with_a_message_and_nothing_is_lost(
    hold: HomeForTests, own_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    table = Table(str(tmp_path / "shop.db"), BATCHES)  # the work is on the server that goes, what is moved is not
    hold.env["HOLDFAST_STORE"] = own_server.url()
    monkeypatch.setenv("HOLDFAST_STORE", hold.env["HOLDFAST_STORE"])
    crew = Crew(hold, table, tmp_path)
    try:
        with Host(str(hold.path)) as host:
            run = submit(host, table)
        worker = crew.add("--once", "--lease", "10m")
        until(lambda: table.moved() >= 10, timeout=DEADLINE_S, pause=0.002)
        own_server.stop(how)
        crew.go()
        until(lambda: "went away" in worker.said or worker.process.poll() is not None, timeout=DEADLINE_S)
        own_server.start()
        assert worker.wait() == 0, worker.said
        assert "hold worker: postgresql://" in worker.said
        assert "waiting up to 60 s" in worker.said
        assert "is back after" in worker.said
        assert "secret" not in worker.said
        with Host(str(hold.path)) as host:
            assert check(host, run, table)["epoch"] == 1
    finally:
        crew.close()
