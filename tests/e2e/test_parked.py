"""A run that waits for a person is an inbox item and a notification, and is so only as long as it waits."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, until
from tests.support.operators import acting_as, enrol

Json = dict[str, Any]


def park(host: Host, key: str = "pay") -> str:
    """A run of a job whose worker could do no more."""
    run = host.work.submit("job")
    epoch = host.work.claim(["job"], worker="w", lease=600)["epoch"]
    mine = {"run": run, "key": key, "epoch": epoch}
    host.work.call("step_begin", **mine)
    host.work.call("step_fail", **mine, error="no answer", known=False)
    host.work.call("run_park", **mine)
    return run


def items(host: Host, *, all: bool = False) -> list[Json]:
    return [i for i in host.call("inbox", all=all)["items"] if i["kind"] == "parked_run"]


def test_people_are_told_of_a_parked_run_and_nothing_of_what_is_in_it(hold: HomeForTests, tmp_path: Path) -> None:
    told = tmp_path / "told"
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\necho "$HOLDFAST_ASK_KIND $HOLDFAST_ASK_SESSION $HOLDFAST_ASK_ASK" >> {told}\n')
    hook.chmod(0o755)
    (hold.path / "config.toml").write_text(f"[notify]\ncommand = {json.dumps(str(hook))}\n")
    run = park(hold.host)
    [item] = items(hold.host)
    assert (item["detail"]["run"], item["detail"]["step"], item["asker"]) == (run, "pay", None)
    until(lambda: told.exists() and told.read_text() == f"parked_run  {item['id']}\n")
    assert "parked run" in hold("inbox").out
    hold.host.work.settle(run, "pay", "not_done", evidence="no such payment")
    assert items(hold.host) == []
    [over] = items(hold.host, all=True)
    assert (over["id"], over["state"]) == (item["id"], "gone")


def test_what_a_killed_host_did_not_come_to_is_there_at_the_next_look(hold: HomeForTests) -> None:
    run = park(hold.host)
    hold.kill_daemon()
    with sqlite3.connect(hold.path / "host.db") as ledger:  # as if it had died before it wrote the item down
        assert ledger.execute("DELETE FROM asks").rowcount == 1
    ledger.close()
    [item] = items(hold.host)
    assert item["detail"]["run"] == run
    hold.kill_daemon()
    assert [i["id"] for i in items(hold.host)] == [item["id"]]


def test_an_ended_run_is_no_item_and_an_inbox_without_work_opens_no_store(hold: HomeForTests) -> None:
    assert items(hold.host) == []
    assert not os.path.exists(hold.path / "work.db")
    run = park(hold.host)
    assert len(items(hold.host)) == 1
    hold.host.work.call("run_end", run=run, state="cancelled")
    assert items(hold.host) == []


def test_an_agent_sees_no_parked_run_and_cannot_make_one_vanish_or_appear(hold: HomeForTests) -> None:
    run = park(hold.host)
    [item] = items(hold.host)
    enrol(hold, "mole", verbs=["view", "work"])
    with acting_as(hold, "mole") as mole:
        assert items(mole) == []
        with pytest.raises(HoldfastError, match="does not know 'parked'"):  # the host looks itself, and asks no caller
            mole.call("parked", runs=[])
    assert [(i["id"], i["detail"]["run"]) for i in items(hold.host)] == [(item["id"], run)]
    enrol(hold, "blind", verbs=["type"])
    with acting_as(hold, "blind") as blind, pytest.raises(HoldfastError) as refused:
        blind.call("run_parked")
    assert refused.value.code == "not_allowed"
