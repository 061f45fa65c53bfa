"""Two homes on one PostgreSQL: what a dead or stopped host held is taken over, and it is fenced when it comes back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host
from holdfast.integrations.store_thread import StoreThread
from holdfast.model.errors import HoldfastError
from holdfast.model.work.effects import Fenced
from tests.support.home import HomeForTests, until
from tests.support.postgres import Server


@pytest.fixture
def url(postgres: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    return postgres.url()


@pytest.fixture
def homes(hold: HomeForTests, url: str, tmp_path: Path) -> Iterator[tuple[HomeForTests, HomeForTests]]:
    other = HomeForTests(tmp_path / "other")
    for home in (hold, other):
        assert home("store", "use", url).code == 0
    yield hold, other
    other.close()


def test_a_stopped_host_is_late_and_what_it_held_is_taken_over_and_it_is_fenced(
    homes: tuple[HomeForTests, HomeForTests], url: str, postgres: Server
) -> None:
    here, there = homes
    id = here.host.call("ping")["host"]["id"]
    run = here.host.work.run(task="t", lease=600)
    run.step("first", lambda: 1)
    with pytest.raises(HoldfastError) as held:
        there.host.work.run(run=run.id)
    assert held.value.code == "busy"
    pid = here.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        postgres.sql(f"UPDATE host SET beat_until = 1 WHERE id = '{id}'", url)  # half a minute later
        taken = there.host.work.run(run=run.id)
        assert (taken.epoch, taken.step("first", lambda: 2)) == (run.epoch + 1, 1)
    finally:
        os.kill(pid, signal.SIGCONT)
    with pytest.raises(Fenced):
        run.step("second", lambda: 2)
    taken.step("second", lambda: 3)
    taken.finish()
    log = here.host.work.call("log_read", run=run.id)
    assert [e["seq"] for e in log] == list(range(1, len(log) + 1))


def test_a_host_says_that_it_is_there_only_while_it_holds_a_lease(
    homes: tuple[HomeForTests, HomeForTests], url: str, postgres: Server
) -> None:
    here, _ = homes
    id = here.host.call("ping")["host"]["id"]
    beat = f"SELECT COALESCE(beat_until::text, 'none') FROM host WHERE id = '{id}'"
    assert postgres.sql(beat, url) == "none"
    run = here.host.work.run(task="t")
    assert postgres.sql(beat, url) != "none"
    run.finish()
    another = here.host.work.run(task="another")  # each grant has the host look again
    another.finish()
    here.kill_daemon()
    here.host.work.runs()  # the next daemon finds no lease of the one before
    until(lambda: postgres.sql(beat, url) == "none", 60)
    assert postgres.sql(f"SELECT generation FROM host WHERE id = '{id}'", url) == "2"


def test_tasks_that_another_host_changed_are_news_here(
    homes: tuple[HomeForTests, HomeForTests], tmp_path: Path, url: str, postgres: Server
) -> None:
    here, there = homes
    for home in homes:
        home.host.work.runs()  # its store is open
    listening = "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()"
    until(lambda: postgres.sql(listening, url) == "2", 60)
    mark = here.host.call("news", of="tasks", timeout=0)["mark"]
    with Host(str(there.path)) as other:
        other.work.call("project_init", name="shop", root=str(tmp_path))
        other.work.call("task_add", project="shop", title="t")
    assert here.host.call("news", of="tasks", after=mark, timeout=60)["subjects"] == ["tasks"]


def test_a_saver_is_refused_a_store_that_a_host_writes(
    homes: tuple[HomeForTests, HomeForTests], url: str, tmp_path: Path
) -> None:
    homes[0].host.work.runs()
    with pytest.raises(HoldfastError, match="store of a home") as told:
        StoreThread(url).start()
    assert "secret" not in told.value.line()
    portal = StoreThread(f"sqlite:///{tmp_path}/own.db")
    portal.start()
    portal.close()
