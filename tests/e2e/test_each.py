"""Batches of steps, and the threads in the host that serve workers: what holds for single steps and calls holds there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client._async.host import AsyncHost
from holdfast.client._sync.host import Host
from holdfast.model.work.effects import WorkerStopping
from holdfast.system import programs
from tests.support.home import HomeForTests
from tests.support.operators import acting_as, enrol, refusals

_DEADLINE_S = 120


def test_a_batch_runs_each_item_once_and_gives_all_results_again(host: Host) -> None:
    seen: list[str] = []

    def copy(item: str, step: Any) -> dict[str, Any]:
        seen.append(item)
        return {"copied": item, "key": step.key}

    items = ["a", "b", "c", "d"]
    with host.work.run(items=items) as run:
        assert run.step("copy:b", copy, "b") == {"copied": "b", "key": "copy:b"}
        first = run.each("copy", copy, run.items)
        assert first == [{"copied": item, "key": f"copy:{item}"} for item in items]
        assert run.each("copy", copy, run.items) == first
        assert run.each("look", len, ["xx", "y"], effect="none") == [2, 1]
        assert run.each("nothing", copy, []) == []
        assert run.status()["items"]["done"] == items
    assert seen == ["b", "a", "c", "d"]
    entries = [
        (e["kind"], e["step"]) for e in host.work.call("log_read", run=run.id) if e["step"] in ("copy:c", "copy:d")
    ]
    assert entries == [(kind, step) for step in ("copy:c", "copy:d") for kind in ("action", "observation")]


def test_a_body_that_raises_in_a_batch_leaves_the_others_as_they_are(host: Host) -> None:
    def body(item: int) -> int:
        if item == 2:
            raise ValueError("two")
        return item

    run = host.work.run()
    with pytest.raises(ValueError, match="two"):
        run.each("n", body, [1, 2, 3])
    with pytest.raises(holdfast.StepInDoubt):
        run.each("n", body, [1, 2, 3])
    assert run.each("n", lambda item: item, [1, 2, 3], verify=lambda item: "seen") == [1, "seen", 3]
    run.finish()


async def test_the_async_face_does_batches_too(hold: HomeForTests) -> None:
    async def body(item: int) -> int:
        return item * 2

    async with AsyncHost(str(hold.path)) as host, await host.work.run() as run:
        assert await run.each("double", body, [1, 2, 3], effect="idempotent") == [2, 4, 6]


def test_a_next_item_that_cannot_begin_does_not_cost_the_one_before_its_outcome(host: Host) -> None:
    run = host.work.run()
    with pytest.raises(holdfast.HoldfastError, match="JSON"):
        run.each("n", str, [1, object(), 3])
    run.step("m:2", str, 2, effect="idempotent")
    with pytest.raises(holdfast.HoldfastError, match="begun with effect idempotent"):
        run.each("m", str, [1, 2, 3])
    run.step("o:2", str, "two", effect="unsafe")
    with pytest.raises(holdfast.HoldfastError, match="begun with other arguments"):
        run.each("o", str, [1, 2, 3])
    with pytest.raises(holdfast.HoldfastError, match="key: expected `str` of length <= 512"):
        run.each("p", len, ["1", "2" * 600])
    states = {step["key"]: step["state"] for step in host.work.call("step_ls", run=run.id)}
    assert states == dict.fromkeys(["n:1", "m:1", "m:2", "o:1", "o:2", "p:1"], "done")
    run.finish()


def test_two_items_of_one_name_are_refused_before_anything_runs_unless_they_have_keys(host: Host) -> None:
    seen: list[Any] = []

    def send(item: Any) -> int:
        seen.append(item)
        return len(seen)

    with host.work.run() as run:
        for items in (["a", "b", "b"], [1, "1"]):
            with pytest.raises(holdfast.HoldfastError, match="two items are the step") as refused:
                run.each("send", send, items)
            assert refused.value.code == "invalid"
        with pytest.raises(holdfast.HoldfastError, match="two items are the step 'send:x'"):
            run.each("send", send, ["b", "c"], keys=["x", "x"])
        with pytest.raises(holdfast.HoldfastError, match="2 items have 1 keys"):
            run.each("send", send, ["b", "b"], keys=["x"])
        assert seen == []
        assert run.each("send", send, ["b", "b"], keys=["first", "second"]) == [1, 2]
        assert run.each("send", send, ["b", "b"], keys=["first", "second"]) == [1, 2]
        assert [s["key"] for s in host.work.call("step_ls", run=run.id)] == ["send:first", "send:second"]
    assert seen == ["b", "b"]


def test_a_worker_that_is_asked_to_stop_inside_a_batch_writes_what_it_finished(host: Host) -> None:
    run = host.work.run()

    def body(item: int) -> int:
        run.leaving = item == 2
        return item

    with pytest.raises(WorkerStopping):
        run.each("n", body, [1, 2, 3])
    states = {step["key"]: step["state"] for step in host.work.call("step_ls", run=run.id)}
    assert states == {"n:1": "done", "n:2": "done"}
    run.close()


_DIES = """
import os, sys
from holdfast import Host

def body(item):
    with open(sys.argv[2], "a") as out:
        print(item, file=out, flush=True)
    if item == int(sys.argv[3]):
        os.kill(os.getpid(), 9)
    return item

run = Host(sys.argv[1]).work.run(task="t", lease=0.5)
run.each("n", body, [1, 2, 3, 4])
"""


def test_a_worker_killed_inside_a_batch_leaves_one_step_in_doubt_and_the_next_one_goes_on(
    host: Host, hold: HomeForTests, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = [sys.executable, "-c", _DIES, str(hold.path), str(out), "3"]
    done = subprocess.run(words, env=hold.env, timeout=_DEADLINE_S, check=False)
    assert done.returncode == -9
    run = host.work.run(task="t", wait=_DEADLINE_S)
    assert run.in_doubt == ["n:3"]
    status = run.status()
    assert (status["steps"]["done"], status["steps"]["in_doubt"], status["steps"]["open"]) == (2, 1, 0)
    ran = out.read_text().split()
    assert run.each("n", lambda item: item, [1, 2, 3, 4], verify=lambda item: item) == [1, 2, 3, 4]
    assert ran == ["1", "2", "3"]
    run.finish()


def test_a_worker_whose_right_is_revoked_is_refused_in_the_middle_of_its_work_and_that_is_journaled(
    hold: HomeForTests,
) -> None:
    bot = enrol(hold, "bot", "agent", verbs=["work"], sessions=["*"])
    with acting_as(hold, "bot") as theirs:
        run = theirs.work.run(lease=3600)
        for n in range(3):  # from the second on, a thread of the host answers
            assert run.step(f"s{n}", lambda: 1) == 1
        assert {s["by"] for s in hold.host.work.call("log_read", run=run.id) if s["step"]} == {"bot"}
        hold.host.revoke(bot["id"])
        with pytest.raises(holdfast.HoldfastError) as refused:
            run.step("late", lambda: 1)
    assert refused.value.code == "not_allowed"
    assert [s["key"] for s in hold.host.work.call("step_ls", run=run.id)] == ["s0", "s1", "s2"]
    assert any(entry["op"] == "step_begin" for entry in refusals(hold))


def test_a_connection_changes_between_single_steps_and_everything_else_at_will(hold: HomeForTests) -> None:
    with Host(str(hold.path)) as host, host.work.run() as run:
        for n in range(5):
            run.step(f"s{n}", lambda: 1)
            assert host.call("ping")["host"]["pid"]
            run.checkpoint(goal=f"goal {n}")
            with pytest.raises(holdfast.HoldfastError, match="does not know 'nonsense'"):
                host.work.call("nonsense")
            with pytest.raises(holdfast.HoldfastError) as wrong:
                host.work.call("step_begin", run=run.id)
            assert wrong.value.code == "invalid"
            assert run.step(f"text{n}", lambda: "\x7f é \U0001f600") == "\x7f é \U0001f600"
        assert run.status()["steps"]["done"] == 10
        hold.kill_daemon()
        assert run.step("after", lambda: 2) == 2


_DYING_ENTRY = """
import os, sys
with open({tries!r}, "a+") as tries:
    tries.write("x")
    tries.seek(0)
    if len(tries.read()) <= 2:
        tries.flush()
        os.kill(os.getpid(), 9)
os.execv(sys.executable, [sys.executable, "-I", {entry!r}, *sys.argv[1:]])
"""


def test_a_host_that_is_killed_while_it_starts_is_started_again_by_a_work_call(
    hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    dying, tries = tmp_path / "entry.py", tmp_path / "tries"
    dying.write_text(_DYING_ENTRY.format(tries=str(tries), entry=programs.HOST))
    monkeypatch.setattr(programs, "HOST", str(dying))
    with Host(str(hold.path)) as host, host.work.run() as run:
        assert run.step("s", lambda: 1) == 1
    assert len(tries.read_text()) == 3
