"""The daemon killed between a person's yes and the command: the next one runs it, and runs it once."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.home import Home
from tests.support.agents import ERAS, Json, Refused, Tools, on_stdio
from tests.support.home import HomeForTests, until

RULE = '[[approve]]\npattern = "danger"\ntimeout = "120s"\n'


@pytest.fixture
def seen(hold: HomeForTests, tmp_path: Path) -> Path:
    (hold.path / "config.toml").write_text(RULE)
    return tmp_path / "seen"


def ran(seen: Path) -> list[str]:
    return seen.read_text().splitlines() if seen.exists() else []


async def asked(tools: Tools, command: str) -> Json:
    told = await patient(tools, session="sh", command=command, wait_s=0)
    assert told["state"] == "waiting_for_approval"
    return told


async def patient(tools: Tools, **args: Any) -> Json:
    """An exec, again where the next daemon took longer to come than the call may last."""
    while True:
        try:
            return await tools("exec", **args)
        except Refused as e:
            if e.code != "busy":
                raise


async def outcome(tools: Tools, command: str) -> Json:
    while True:
        told = await patient(tools, session="sh", command=command)
        if told["state"] not in ("running", "waiting_for_approval"):
            return told


@pytest.mark.parametrize("era", ERAS)
async def test_an_open_item_and_its_request_survive_the_daemon(hold: HomeForTests, seen: Path, era: str) -> None:
    command = f"echo danger | tee -a {seen}"
    async with on_stdio(hold, era) as tools:
        await tools("run", name="sh")
        first = await asked(tools, command)
        hold.kill_daemon()
        assert (await asked(tools, command))["ask"] == first["ask"]
        hold.host.answer(first["ask"], approve=True)
        done = await outcome(tools, command)
        assert (done["exec_id"], done["output"], ran(seen)) == (first["exec_id"], "danger\n", ["danger"])


def record(hold: HomeForTests, session: str, exec_id: str) -> None:
    """What a daemon has written of a command that it did not get to type."""
    records = Path(Home(str(hold.path)).session(session).execs, "results.jsonl")
    begun = next(json.loads(line) for line in records.read_text().splitlines() if line)
    begun |= {"exec_id": exec_id, "token": os.urandom(16).hex(), "file": "neverrun", "start": None}
    with records.open("a") as f:
        f.write("\n" + json.dumps(begun))


@pytest.mark.parametrize("half", ["nothing", "a record"])
async def test_what_was_approved_and_not_begun_is_run_by_the_next_daemon(
    hold: HomeForTests, seen: Path, tmp_path: Path, half: str
) -> None:
    """The shell is busy, so the yes is there and the command is not; also with the command's record on disk, which is
    all that a daemon leaves that dies before it types."""
    gate, command = tmp_path / "gate", f"echo danger | tee -a {seen}"
    os.mkfifo(gate)
    async with on_stdio(hold, ERAS[1]) as tools:
        shell = await tools("run", name="sh")
        first = await asked(tools, command)
        await tools("exec", session="sh", command=f"cat {gate}", wait_s=0)
        hold.host.answer(first["ask"], approve=True)
        hold.kill_daemon()
        if half == "a record":
            record(hold, shell["id"], first["exec_id"])
        hold.host.call("ping")
        assert ran(seen) == []
        await asyncio.to_thread(gate.write_text, "go on\n")
        await asyncio.to_thread(until, lambda: ran(seen) == ["danger"], 30)  # by itself: nobody has to ask again
        done = await outcome(tools, command)
        assert (done["exec_id"], done["exit_code"], ran(seen)) == (first["exec_id"], 0, ["danger"])


async def test_a_daemon_killed_at_any_moment_after_the_yes_runs_it_once(hold: HomeForTests, seen: Path) -> None:
    async with on_stdio(hold, ERAS[0]) as tools:
        await tools("run", name="sh")
        for n in range(5):
            command = f"echo danger-{n} >> {seen}"
            first = await asked(tools, command)
            pid = hold.daemon_pid()
            hold.host.answer(first["ask"], approve=True)
            await asyncio.sleep(n * 0.002)  # where in its work it dies
            assert hold.kill_daemon() == pid
            done = await outcome(tools, command)
            assert (done["exec_id"], done["exit_code"]) == (first["exec_id"], 0)
            assert ran(seen) == [f"danger-{k}" for k in range(n + 1)]


async def test_what_ran_before_the_kill_is_told_and_not_run_again(hold: HomeForTests, seen: Path) -> None:
    command = f"echo danger | tee -a {seen}"
    async with on_stdio(hold, ERAS[1]) as tools:
        await tools("run", name="sh")
        first = await asked(tools, command)
        hold.host.answer(first["ask"], approve=True)
        until(lambda: ran(seen) == ["danger"], 30)
        hold.kill_daemon()
        done = await outcome(tools, command)
        assert (done["exec_id"], done["output"], ran(seen)) == (first["exec_id"], "danger\n", ["danger"])


async def test_a_start_and_a_text_survive_as_well(hold: HomeForTests, seen: Path) -> None:
    async with on_stdio(hold, ERAS[0], "--wait-max", "300ms") as tools:
        start: Json = {"name": "job", "command": f"echo danger >> {seen}; exec cat"}
        first = await tools("run", **start)
        hold.kill_daemon()
        hold.host.answer(first["ask"], approve=True)
        hold.kill_daemon()
        until(lambda: hold.host.call("ls") and ran(seen) == ["danger"], 30)
        made = await tools("run", **start)
        assert (made["session"], made["state"]) == ("job", "live")
        text: Json = {"session": "job", "text": "danger here", "enter": True}
        first = await tools("send", **text)
        hold.kill_daemon()
        hold.host.answer(first["ask"], approve=True)
        while (told := await tools("send", **text)).get("state"):
            assert told["ask"] == first["ask"]
        assert told["sent"] is True
        assert ran(seen) == ["danger"]


async def test_a_daemon_killed_while_it_types_what_was_approved_types_it_once(hold: HomeForTests, seen: Path) -> None:
    async with on_stdio(hold, ERAS[0], "--wait-max", "300ms") as tools:
        await tools("run", name="job", command=f"while read -r line; do echo $line >> {seen}; done")
        assert hold.host.session("job").wait(input=True, timeout=30).event == "input"
        for n in range(3):
            text: Json = {"session": "job", "text": f"danger {n}", "enter": True}
            first = await tools("send", **text)
            hold.host.answer(first["ask"], approve=True)
            await asyncio.sleep(n * 0.003)  # where in its work it dies
            hold.kill_daemon()
            while (told := await tools("send", **text)).get("state"):
                assert told["ask"] == first["ask"]
            assert told["sent"] is True
            until(lambda: ran(seen) == [f"danger {k}" for k in range(n + 1)], 30)  # noqa: B023
