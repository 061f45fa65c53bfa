"""`hold store migrate`: all of the work goes to PostgreSQL, checked, or nothing does."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests
from tests.support.postgres import Server


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)


def some_work(host: Host) -> str:
    """A bit of everything: text of every kind, large content, checkpoints, memory, a step in doubt."""
    chance = random.Random(7)
    with host.work.run(task="Zürich", items=["a", "B", "ä", "b"]) as run:
        for key in ("b", "B", "ä", "a", "a-b", "a b", "é", "\U0001f600"):
            run.step(key, lambda key=key: {"text": key * 3, "quote": "\"'\\"}, effect="idempotent")
        run.put("large", chance.randbytes(2_500_000))
        run.put("empty", b"")
        run.checkpoint(goal="move", context={"n": 1})
        for n in range(1200):
            run.note(f"note {n}", kind="learned")
        run.checkpoint(context={"n": 2})
    left = host.work.run(task="left")
    with pytest.raises(ValueError, match="no"):
        left.step("pay", lambda: int("no"))
    left.close()
    return run.id


def everything(host: Host, run: str) -> Any:
    work = host.work
    status = work.status(run)
    status.pop("observed_at")
    history = work.call("log_read", run=run)
    state = work.call("state_at", run=run)
    doubts = [s["key"] for r in work.runs(task="left") for s in work.status(r["run"])["in_doubt"]]
    contents = [work.artifact(run, name) for name in ("large", "empty")]
    return status, history, state, doubts, contents, work.call("step_ls", run=run), work.call("checkpoint_ls", run=run)


def test_all_of_the_work_is_on_the_server_and_goes_on_there(
    hold: HomeForTests, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = some_work(hold.host)
    before = everything(hold.host, run)
    url = postgres.url()
    moved = hold("store", "migrate", url, "--json")
    assert moved.code == 0, moved.out + moved.err
    counts = {t["table"]: t["rows"] for t in moved.json["tables"]}
    assert (counts["run"], counts["step"], counts["ref"]) == (2, 9, 2)
    assert counts["log"] > 1200
    assert moved.json["rows"] == sum(counts.values())
    assert "secret" not in moved.out
    for table, count in counts.items():
        assert postgres.sql(f"SELECT COUNT(*) FROM {table}", url) == str(count)
    file = hold.host.call("store")["store"]
    assert hold("store", "use", url).code == 0
    assert everything(hold.host, run) == before  # through the host
    monkeypatch.setenv("HOLDFAST_STORE", url)
    with Host(str(hold.path)) as there:
        assert everything(there, run) == before
        again = there.work.run(task="left")
        assert again.step("pay", lambda: 5, verify=lambda: None) == 5
        again.finish()
    monkeypatch.delenv("HOLDFAST_STORE")
    assert hold("store", "use", file).code == 0
    assert everything(hold.host, run) == before  # the file is as it was


def test_what_cannot_be_moved_is_told_in_one_line_and_nothing_is_kept(hold: HomeForTests, postgres: Server) -> None:
    run = hold.host.work.run(task="t")
    url = postgres.url()
    busy = hold("store", "migrate", url, "--json")
    assert (busy.code, busy.json["error"]["code"]) == (5, "busy")
    run.finish()
    assert postgres.sql("SELECT COUNT(*) FROM pg_tables WHERE tablename = 'run'", url) == "0", "not even looked at"
    assert hold("store", "migrate", url).code == 0
    twice = hold("store", "migrate", url, "--json")
    assert (twice.code, twice.json["error"]["code"]) == (5, "conflict")
    assert postgres.sql("SELECT COUNT(*) FROM run", url) == "1"
    for wrong, code in (
        ("sqlite:///x.db", 2),
        ("nonsense", 2),
        (postgres.url("wrong"), 4),
        ("postgresql://u@127.0.0.1:1/d", 1),
    ):
        told = hold("store", "migrate", wrong)
        assert (told.code, told.err.count("\n")) == (code, 1), told.err
    assert hold("store", "use", url).code == 0
    assert hold("store", "migrate", url).code == 2


def test_a_row_that_changes_on_its_way_is_found_and_nothing_is_kept(hold: HomeForTests, postgres: Server) -> None:
    some_work(hold.host)
    url = postgres.url()
    file = hold.host.call("store")["store"]
    for one in (url, file):
        assert hold("store", "use", one).code == 0  # makes the schema
    change = "CREATE FUNCTION spoil() RETURNS trigger AS $$ BEGIN NEW.body := NEW.body || ' '; RETURN NEW; END $$ LANGUAGE plpgsql;"
    postgres.sql(
        change + "CREATE TRIGGER spoil BEFORE INSERT ON log FOR EACH ROW WHEN (NEW.seq = 600) EXECUTE FUNCTION spoil()",
        url,
    )
    told = hold("store", "migrate", url, "--json")
    assert (told.code, told.json["error"]["code"]) == (1, "store_damaged")
    assert "log is not the same" in told.json["error"]["message"]
    assert postgres.sql("SELECT COUNT(*) FROM run", url) == "0"


def test_a_home_without_work_can_be_moved_too(hold: HomeForTests, postgres: Server) -> None:
    moved = hold("store", "migrate", postgres.url(), "--json")
    assert (moved.code, moved.json["rows"]) == (0, 0), moved.out
    assert os.path.basename(moved.json["from"]) == "work.db"
