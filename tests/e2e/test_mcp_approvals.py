"""Approvals over MCP: the call ends, the question stays, and what was approved is done once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import ERAS, Json, Refused, Tools, on_stdio, over_http, servers
from tests.support.home import HomeForTests, until, until_async
from tests.support.web import serve, token

RULE = '[[approve]]\npattern = "danger"\ntimeout = "120s"\n'
SHORT = ("--wait-max", "300ms")  # a client that is not patient, and no pace of ours


def rule(hold: HomeForTests, text: str = RULE) -> None:
    (hold.path / "config.toml").write_text(text)


def approvals(hold: HomeForTests) -> list[str]:
    return [item["id"] for item in hold.host.call("inbox")["items"] if item["kind"] == "approval"]


async def outcome(tools: Tools, tool: str, /, **args: Any) -> Json:
    """What a call comes to that is made until it is no longer `waiting_for_approval` or `running`."""
    while True:
        told = await tools(tool, **args)
        if told.get("state") not in ("waiting_for_approval", "running"):
            return told


@pytest.fixture
def seen(tmp_path: Path) -> Path:
    """A file with a line for each time that the command ran."""
    return tmp_path / "seen"


def ran(seen: Path) -> int:
    return len(seen.read_text().splitlines()) if seen.exists() else 0


@pytest.mark.parametrize("era", ERAS)
async def test_the_same_call_is_the_same_item_and_runs_once_after_the_yes(
    hold: HomeForTests, seen: Path, era: str
) -> None:
    rule(hold)
    async with on_stdio(hold, era, *SHORT) as tools:
        await tools("run", name="sh")
        call: Json = {"session": "sh", "command": f"echo danger-$((6*7)) | tee -a {seen}"}
        first = await tools("exec", **call, why="to ship it")
        assert (first["state"], approvals(hold)) == ("waiting_for_approval", [first["ask"]])
        assert first["exec_id"].startswith("exe_")
        assert f"wait for=answer={first['ask']}" in first["next"]
        again = await tools("exec", **call, why="in other words")
        assert (again["state"], again["ask"], again["exec_id"]) == (first["state"], first["ask"], first["exec_id"])
        assert approvals(hold) == [first["ask"]]
        waited = await tools("wait", **{"for": f"answer={first['ask']}"})
        assert (waited["event"], waited["state"]) == ("timeout", "open")
        assert ran(seen) == 0
        hold.host.answer(first["ask"], approve=True)
        waited = await tools("wait", **{"for": f"answer={first['ask']}"})
        assert (waited["event"], waited["state"]) == ("answer", "answered")
        done = await outcome(tools, "exec", **call)
        assert (done["state"], done["exit_code"], done["output"]) == ("exited", 0, "danger-42\n")
        assert (done["exec_id"], ran(seen)) == (first["exec_id"], 1)
        anew = await tools("exec", **call)
        assert anew["state"] == "waiting_for_approval", "a yes is for one run"
        assert anew["ask"] != first["ask"]
        assert ran(seen) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_it_is_the_same(hold: HomeForTests, seen: Path, era: str) -> None:
    rule(hold)
    url, secret = serve(hold), token(hold, "remote")
    async with over_http(url, secret, era) as tools:
        await tools("run", name="sh")
        call: Json = {"session": "sh", "command": f"echo danger | tee -a {seen}", "wait_s": 0.1}
        first = await tools("exec", **call)
        assert (await tools("exec", **call))["ask"] == first["ask"]
        hold.host.answer(first["ask"], approve=True)
        assert (await outcome(tools, "exec", **call))["output"] == "danger\n"
        assert ran(seen) == 1


async def test_it_runs_after_the_yes_though_its_asker_has_left(hold: HomeForTests, seen: Path) -> None:
    rule(hold)
    call: Json = {"session": "sh", "command": f"echo danger | tee -a {seen}"}
    with contextlib.suppress(Exception):  # the transport ends under it
        async with on_stdio(hold, ERAS[0], "--wait-max", "500") as tools:
            await tools("run", name="sh")
            waiting = asyncio.create_task(tools("exec", **call))
            (ask,) = await until_async(lambda: approvals(hold), 30)
            for pid in servers(hold):
                os.kill(pid, signal.SIGKILL)
            await asyncio.wait_for(waiting, 30)
    until(lambda: not servers(hold))
    assert approvals(hold) == [ask], "the item lives as long as its rule says"
    hold.host.answer(ask, approve=True)
    until(lambda: ran(seen) == 1, 30)
    async with on_stdio(hold, ERAS[1]) as tools:
        assert (await outcome(tools, "exec", **call))["output"] == "danger\n"
    assert ran(seen) == 1


async def test_a_cancelled_call_leaves_its_item(hold: HomeForTests, seen: Path) -> None:
    rule(hold)
    async with on_stdio(hold, ERAS[1], "--wait-max", "500") as tools:
        await tools("run", name="sh")
        waiting = asyncio.create_task(tools("exec", session="sh", command=f"echo danger >> {seen}"))
        (ask,) = await until_async(lambda: approvals(hold), 30)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await tools("status")
        assert approvals(hold) == [ask]
        call: Json = {"session": "sh", "command": f"echo danger >> {seen}"}
        told = await asyncio.gather(*(tools("exec", **call, wait_s=0) for _ in range(3)))
        assert {(one["state"], one["ask"]) for one in told} == {("waiting_for_approval", ask)}
        hold.host.answer(ask, approve=True)
        assert (await tools("exec", **call))["exit_code"] == 0
        assert ran(seen) == 1, "calls at the same time are one request"


@pytest.mark.parametrize("era", ERAS)
async def test_a_no_is_told_once_and_asking_again_is_a_new_item(hold: HomeForTests, seen: Path, era: str) -> None:
    rule(hold)
    async with on_stdio(hold, era, *SHORT) as tools:
        await tools("run", name="sh")
        call: Json = {"session": "sh", "command": f"echo danger >> {seen}"}
        first = await tools("exec", **call)
        hold.host.answer(first["ask"], approve=False, why="not today")
        with pytest.raises(Refused) as refused:
            await tools("exec", **call)
        assert (refused.value.code, first["ask"] in refused.value.message) == ("not_allowed", True)
        assert (await tools("exec", **call))["ask"] != first["ask"]
        assert ran(seen) == 0


async def test_no_answer_in_time_is_a_no(hold: HomeForTests, seen: Path) -> None:
    rule(hold, RULE.replace("120s", "0.4s"))
    async with on_stdio(hold, ERAS[0], "--wait-max", "30") as tools:
        await tools("run", name="sh")
        first = await tools("exec", session="sh", command=f"echo danger >> {seen}", wait_s=0)
        with pytest.raises(Refused) as refused:
            await tools("exec", session="sh", command=f"echo danger >> {seen}")
        assert (refused.value.code, first["ask"] in refused.value.message) == ("not_allowed", True)
        assert ran(seen) == 0


async def test_a_shell_that_is_busy_when_the_yes_comes_runs_it_afterwards(
    hold: HomeForTests, seen: Path, tmp_path: Path
) -> None:
    rule(hold)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with on_stdio(hold, ERAS[0], *SHORT) as tools:
        await tools("run", name="sh")
        asked = await tools("exec", session="sh", command=f"echo danger >> {seen}")
        busy = await tools("exec", session="sh", command=f"cat {gate}")
        assert busy["state"] == "running"
        hold.host.answer(asked["ask"], approve=True)
        told = await tools("exec", session="sh", command=f"echo danger >> {seen}")
        assert (told["state"], told["exec_id"], ran(seen)) == ("running", asked["exec_id"], 0)
        await asyncio.to_thread(gate.write_text, "go on\n")
        done = await tools("wait", session="sh", **{"for": f"done={asked['exec_id']}"}, wait_s=30)
        while done["event"] == "timeout":
            done = await tools("wait", session="sh", **{"for": f"done={asked['exec_id']}"}, wait_s=30)
        assert (done["exit_code"], ran(seen)) == (0, 1)


async def test_a_command_that_is_a_step_waits_and_is_done_once(hold: HomeForTests, seen: Path) -> None:
    rule(hold)
    async with on_stdio(hold, ERAS[1], *SHORT) as tools:
        await tools("run", name="sh")
        run = (await tools("task", do="start", task="job"))["run"]
        call: Json = {"session": "sh", "command": f"echo danger | tee -a {seen}", "step": f"{run}:ship"}
        first = await tools("exec", **call)
        assert first["state"] == "waiting_for_approval"
        again = await tools("exec", **call)
        assert (again["ask"], again["exec_id"]) == (first["ask"], first["exec_id"])
        assert approvals(hold) == [first["ask"]]
        hold.host.answer(first["ask"], approve=True)
        done = await outcome(tools, "exec", **call)
        assert (done["exit_code"], done["output"]) == (0, "danger\n")
        assert [s["state"] for s in (await tools("step", run=run, do="ls"))["steps"]] == ["settled"]
        assert (await tools("exec", **call))["step"]["decision"] == "reuse"
        assert ran(seen) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_start_and_a_text_wait_as_well(hold: HomeForTests, seen: Path, era: str) -> None:
    rule(hold)
    async with on_stdio(hold, era, *SHORT) as tools:
        start: Json = {"name": "job", "command": f"echo danger >> {seen}; exec cat"}
        first = await tools("run", **start)
        assert (first["state"], (await tools("run", **start))["ask"]) == ("waiting_for_approval", first["ask"])
        hold.host.answer(first["ask"], approve=True)
        made = await outcome(tools, "run", **start)
        assert (made["session"], made["state"]) == ("job", "live")
        until(lambda: ran(seen) == 1, 30)
        text: Json = {"session": "job", "text": "danger here", "enter": True}
        first = await tools("send", **text)
        assert (first["state"], (await tools("send", **text))["ask"]) == ("waiting_for_approval", first["ask"])
        assert approvals(hold) == [first["ask"]]
        hold.host.answer(first["ask"], approve=True)
        assert (await outcome(tools, "send", **text))["sent"] is True
        shown = await tools("wait", session="job", **{"for": "text=danger here\r\ndanger here", "from": 0}, wait_s=30)
        while shown["event"] == "timeout":
            shown = await tools(
                "wait", session="job", **{"for": "text=danger here\r\ndanger here", "from": 0}, wait_s=30
            )
        assert "here\ndanger here\ndanger" not in (await tools("read", session="job"))["text"], "typed once"
        assert [s.name for s in hold.host.sessions()] == ["job"]
