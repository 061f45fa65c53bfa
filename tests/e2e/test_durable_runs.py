"""Durable runs as Python programs and the command line use them: through the host, and on PostgreSQL directly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client._async.host import AsyncHost
from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests, until
from tests.support.postgres import Server


def test_a_step_runs_once_and_gives_its_result_to_whoever_asks_again(host: Host) -> None:
    seen: list[str] = []

    def copy(name: str, *, size: int = 1) -> dict[str, Any]:
        seen.append(name)
        return {"copied": name, "pair": (size, 2)}

    with host.work.run(task="1.5", params={"from": "a"}, items=["b1", "b2"]) as run:
        first = run.step("copy:b1", copy, "b1", size=3)
        assert run.step("copy:b1", copy, "b1", size=3) == first == {"copied": "b1", "pair": [3, 2]}
        assert run.status()["items"]["pending"] == ["b2"]
        with pytest.raises(holdfast.HoldfastError, match="other arguments"):
            run.step("copy:b1", copy, "b1", size=4)
        assert run.step("look", lambda: 7, effect="none") == 7
        assert run.step("look", lambda: 8, effect="none") == 7
    assert seen == ["b1"]
    again = host.work.run(task="1.5")
    assert (again.state, again.id) == ("done", run.id)


def test_the_body_gets_the_epoch_and_the_key_when_it_asks(host: Host) -> None:
    def body(name: str, step: Any) -> list[Any]:
        return [name, step.epoch, step.idem_key, step.key]

    with host.work.run() as run:
        name, epoch, idem_key, key = run.step("k", body, "n", idem_key="mine", effect="idempotent")
        assert (name, epoch, idem_key, key) == ("n", run.epoch, "mine", "k")


def test_a_body_that_raises_leaves_an_unsafe_step_in_doubt_and_hooks_settle_it(host: Host) -> None:
    calls: list[str] = []

    def body() -> str:
        calls.append("body")
        if calls.count("body") == 1:
            raise ValueError("the line went dead")
        return "sent"

    run = host.work.run()
    with pytest.raises(ValueError, match="dead"):
        run.step("pay", body)
    with pytest.raises(holdfast.StepInDoubt) as doubt:
        run.step("pay", body)
    assert doubt.value.report["error"] == "ValueError: the line went dead"
    assert f"hold step settle {run.id} pay" in doubt.value.hint
    assert calls == ["body"]
    assert run.step("pay", body, verify=lambda: None) == "sent"  # looked: it had not happened
    assert calls == ["body", "body"]

    def half() -> None:
        raise RuntimeError("half done")

    with pytest.raises(RuntimeError):
        run.step("move", half, effect="verifiable")
    assert run.step("move", half, effect="verifiable", verify=lambda: {"rows": 3}) == {"rows": 3}
    with pytest.raises(RuntimeError):
        run.step("undo", half, compensate=lambda: calls.append("undone"))
    assert calls[-1] == "undone"
    assert run.step("undo", lambda: 1) == 1  # undone: known not to have happened
    run.finish()


def test_a_result_that_is_no_json_is_told_and_is_a_doubt_not_a_repetition(host: Host) -> None:
    run = host.work.run()
    with pytest.raises(holdfast.HoldfastError, match="JSON"):
        run.step("k", object)
    with pytest.raises(holdfast.StepInDoubt):
        run.step("k", lambda: 1)
    run.close()


def test_the_heartbeat_keeps_a_short_lease_and_a_second_worker_waits_its_turn(host: Host) -> None:
    first = host.work.run(task="t", lease=15)
    with pytest.raises(holdfast.HoldfastError) as busy:
        host.work.run(task="t")
    assert busy.value.code == "busy"
    until_ = first.status()["lease_until"]
    until(lambda: first.status()["lease_until"] > until_, timeout=60)
    assert first.step("k", lambda: 1) == 1
    first.close()
    second = host.work.run(task="t", wait=60)
    assert (second.id, second.epoch) == (first.id, first.epoch + 1)
    with pytest.raises(holdfast.Fenced):
        first.step("k2", lambda: 1)
    second.finish()


def test_artifacts_and_notes_through_the_sdk(host: Host) -> None:
    content = os.urandom(3 << 20)
    with host.work.run() as run:
        put = run.put("model.bin", content, sources=["train.csv"])
        assert (put["size"], put["sources"]) == (len(content), ["train.csv"])
        assert run.get("model.bin") == content
        assert run.note("use the small one", kind="decision") > 0
    with pytest.raises(holdfast.HoldfastError) as refused:
        host.work.artifact(run.id, "other")
    assert refused.value.code == "not_found"


def test_the_command_line_and_python_share_a_run(host: Host, hold: HomeForTests) -> None:
    run = hold("work", "begin", "--task", "deploy", "--item", "a", "--item", "b").out.strip()
    begun = hold("step", "begin", run, "ship:a", "--args", '["a"]', "--why", "it is due", "--json").json
    assert (begun["decision"], begun["result"]) == ("execute", None)
    assert begun["idem_key"]
    again = hold("step", "begin", run, "ship:a", "--args", '["a"]', "--json").json
    assert again["decision"] == "in_doubt"
    bare = hold("step", "settle", run, "ship:a", "--done", "--json")
    assert (bare.code, bare.json["error"]["code"]) == (2, "invalid")
    assert (
        hold("step", "settle", run, "ship:a", "--done", "--result", '{"v": 2}', "--evidence", "curl says 2").code == 0
    )

    def never(name: str) -> None:
        raise AssertionError("it was done already")

    mine = host.work.run(task="deploy")
    assert mine.id == run
    assert mine.step("ship:a", never, "a") == {"v": 2}
    fenced = hold("step", "begin", run, "ship:b", "--json")
    assert (fenced.code, fenced.json["error"]["code"]) == (5, "fenced")
    assert hold("step", "end", run, "ship:a", "--epoch", "1").code == 5
    mine.step("ship:b", lambda name: name, "b")
    mine.finish()
    assert hold("note", run, "went well", "--kind", "learned").code == 0
    kinds = [e["kind"] for e in hold("history", run, "--json").json]
    assert kinds[0] == "run"
    assert {"action", "observation", "settlement", "learned"} <= set(kinds)
    status = hold("work", "status", run, "--json").json
    assert (status["state"], status["items"]["done"]) == ("done", ["a", "b"])
    assert "went well" in hold("history", run).out


def test_artifacts_on_the_command_line(hold: HomeForTests, tmp_path: Path) -> None:
    run = hold("work", "begin").out.strip()
    source = tmp_path / "r.txt"
    source.write_bytes(b"\x00\xffreport")
    assert hold("artifact", "put", run, str(source), "--from", "data.csv").code == 0
    assert hold("artifact", "put", run, "-", "--name", "in", stdin=b"x").code == 0
    assert hold("artifact", "get", run, "r.txt").raw == b"\x00\xffreport"
    assert [a["name"] for a in hold("artifact", "ls", run, "--json").json] == ["r.txt", "in"]
    assert hold("artifact", "get", run, "none").code == 3
    assert hold("artifact", "orphans", "--json").json == []
    assert hold("artifact", "rm", run, "in").code == 0
    assert hold("artifact", "rm", run, "in").code == 3
    assert hold("artifact", "gc", "--json").json["contents"] == 0


def test_a_backup_carries_the_work(hold: HomeForTests, tmp_path: Path) -> None:
    with hold.host.work.run(task="t") as run:
        run.step("k", lambda: "kept")
    saved = str(tmp_path / "home.backup")
    assert hold("backup", saved).code == 0
    other = HomeForTests(tmp_path / "other")
    try:
        assert other("restore", saved).code == 0
        assert other.host.work.call("step_ls", run=run.id)[0]["result"] == "kept"
    finally:
        other.close()


async def test_the_async_client_runs_coroutines_and_plain_functions_as_steps(
    hold: HomeForTests, monkeypatch: pytest.MonkeyPatch, postgres: Server
) -> None:
    async def fetch(n: int) -> int:
        await asyncio.sleep(0)
        return n * 2

    for store in (None, postgres.url()):
        if store:
            assert hold("store", "use", store).code == 0
            monkeypatch.setenv("HOLDFAST_STORE", store)
        async with AsyncHost(str(hold.path)) as host, await host.work.run(items=["1", "2", "3"]) as run:
            values = [await run.step(item, fetch, int(item)) for item in run.items]
            assert values == [2, 4, 6]
            assert await run.step("plain", len, "four") == 4
            together = await asyncio.gather(*(run.step(f"g{n}", fetch, n) for n in range(20)))
            assert together == [n * 2 for n in range(20)]


def test_a_host_that_nobody_asks_for_work_has_no_database(hold: HomeForTests) -> None:
    hold.host.call("ping")
    assert not (hold.path / "work.db").exists()
    assert hold.host.work.runs() == []
    assert (hold.path / "work.db").exists()


def test_a_daemon_killed_between_two_calls_is_not_noticed(hold: HomeForTests) -> None:
    with hold.host.work.run() as run:
        for n in range(4):
            assert run.step(f"k{n}", lambda n=n: n) == n
            hold.kill_daemon()


WORKER = """
import os, sys, holdfast
folder = sys.argv[1]
with holdfast.connect() as host:
    run = host.work.run(task="move", items=[f"b{n}" for n in range(6)], lease=8, wait=300)
    def move(item):
        with open(f"{folder}/moved", "a") as f: f.write(item + "\\n")
        if item == sys.argv[2]:
            open(f"{folder}/inside", "w").close()
            os.kill(os.getpid(), int(sys.argv[3]))
        return item
    def is_moved(item):
        return item in open(f"{folder}/moved").read().split()
    try:
        for item in run.items:
            run.step(f"move:{item}", move, item, effect="verifiable", verify=is_moved)
        run.finish()
        print("finished", flush=True)
    except holdfast.Fenced as e:
        print("fenced", flush=True)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_standby_finishes_what_a_dead_or_stopped_worker_began_and_each_item_is_moved_once(
    host: Host, hold: HomeForTests, tmp_path: Path, how: signal.Signals
) -> None:
    def worker(stop_at: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", WORKER, str(tmp_path), stop_at, str(int(how))]
        return subprocess.Popen(words, env=hold.env, stdout=subprocess.PIPE, text=True)

    host.call("ping")
    with worker("b3") as first:
        try:
            until((tmp_path / "inside").exists, timeout=90)
            with worker("-") as second:
                try:
                    assert second.communicate(timeout=90)[0] == "finished\n"
                finally:
                    second.kill()
            if how == signal.SIGSTOP:
                first.send_signal(signal.SIGCONT)
                assert first.communicate(timeout=90)[0] == "fenced\n"
        finally:
            first.kill()
    assert (tmp_path / "moved").read_text().split() == [f"b{n}" for n in range(6)]
    (made,) = host.work.runs(task="move")
    status = host.work.status(made["run"])
    assert (status["state"], status["epoch"], status["items"]["done"]) == ("done", 2, [f"b{n}" for n in range(6)])
    settled = [s for s in host.work.call("step_ls", run=made["run"]) if s["state"] == "settled"]
    assert [s["key"] for s in settled] == ["move:b3"]
    assert json.dumps(settled[0]["evidence"]).count("verify") == 1
