"""Kernels killed at every boundary, in the middle of an agent's call: the answer is exact or says that nobody knows."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import ERAS, Refused, Tools, on_stdio
from tests.support.home import HomeForTests, alive, until, until_async
from tests.support.soak import Rounds

Json = dict[str, Any]
LONG = 90  # seconds: an interpreter on a loaded machine
WAITING = "import os, time\nopen({mark!r}, 'w').close()\nwhile not os.path.exists({go!r}): time.sleep(0.01)\n'end'"


@asynccontextmanager
async def calculating(hold: HomeForTests, era: str = ERAS[0]) -> AsyncIterator[Tools]:
    async with on_stdio(hold, era, "--wait-max", f"{LONG}s") as tools:
        await tools("run", name="calc", kernel="python3")
        assert (await tools("exec", session="calc", command="x = 1; x"))["exit_code"] == 0
        yield tools


def victims(hold: HomeForTests) -> dict[str, int]:
    found = hold("status", "calc", "--json").json
    return {
        "recorder": found["pid"],
        "kernel": found["kernel"]["pid"],
        "daemon": hold.daemon_pid(),
        "keeper": hold.keeper_pid(hold.host.session(found["id"])),
    }


async def result(call: asyncio.Task[Json]) -> Json:
    """The answer, or the structured refusal; never nothing."""
    try:
        return await asyncio.wait_for(call, LONG)
    except Refused as e:
        return {"state": "refused", "code": e.code, "message": e.message, "exit_code": None}


@pytest.mark.parametrize("victim", ["recorder", "kernel", "keeper"])
async def test_a_cell_whose_session_dies_under_it_is_told_so_and_never_as_a_success(
    hold: HomeForTests, tmp_path: Path, victim: str
) -> None:
    mark, go = tmp_path / "mark", tmp_path / "go"
    async with calculating(hold) as tools:
        pids = await asyncio.to_thread(victims, hold)
        call = asyncio.create_task(
            tools("exec", session="calc", command=WAITING.format(mark=str(mark), go=str(go)), why="a try")
        )
        await until_async(mark.exists, LONG)
        os.kill(pids[victim], signal.SIGKILL)
        told = await result(call)
        assert told["state"] in ("shell_ended", "refused"), told
        assert told["exit_code"] != 0
        seen = await tools("status", session="calc")
        async with asyncio.timeout(LONG):
            while seen["state"] == "live":  # which it is until the kernel is gone as well
                await asyncio.sleep(0.05)
                seen = await tools("status", session="calc")
        assert seen["state"] == ("lost" if victim == "keeper" else "exited"), seen
        if victim == "keeper":
            assert seen.get("exit") in (None, {"known": False}), seen
        else:
            assert told["error"]["ename"] == "KernelEnded"
            assert seen["exit"]["signal"] == "SIGKILL"
            await until_async(lambda: not alive(pids["kernel"]), LONG)
        with pytest.raises(Refused) as refused:
            await tools("exec", session="calc", command="x")
        assert refused.value.code == "conflict"
        ended = [e for e in seen["recent"] if e["did"] == "exec"]
        assert len(ended) == 2, "both cells are in the record, also the one that died"


@pytest.mark.parametrize("era", ERAS)
async def test_a_daemon_killed_in_the_middle_of_a_cell_changes_nothing_about_it(
    hold: HomeForTests, tmp_path: Path, era: str
) -> None:
    mark, go = tmp_path / "mark", tmp_path / "go"
    async with calculating(hold, era) as tools:
        before = await asyncio.to_thread(victims, hold)
        call = asyncio.create_task(tools("exec", session="calc", command=WAITING.format(mark=str(mark), go=str(go))))
        await until_async(mark.exists, LONG)
        os.kill(before["daemon"], signal.SIGKILL)
        go.touch()
        told = await result(call)
        if told["state"] == "refused":  # the call was lost with the daemon; the cell was not
            seen = await tools("status", session="calc")
            begun = [e for e in seen["recent"] if e["did"] == "exec"][-1]["exec_id"]
            told = await tools("wait", session="calc", **{"for": f"done={begun}"})
        assert (told["state"], told["exit_code"]) == ("exited", 0), told
        assert told["outputs"][0]["data"]["text/plain"] == "'end'"
        assert (await tools("exec", session="calc", command="x"))["outputs"][0]["data"]["text/plain"] == "1"
        after = await asyncio.to_thread(victims, hold)
        assert {k: after[k] for k in ("recorder", "kernel", "keeper")} == {
            k: before[k] for k in ("recorder", "kernel", "keeper")
        }


async def test_a_kernel_that_dies_while_it_asks_is_no_answer(hold: HomeForTests) -> None:
    async with calculating(hold) as tools:
        asked = await tools("exec", session="calc", command="name = input('Your name? ')")
        assert (asked["state"], asked["prompt"]) == ("waiting_for_input", "Your name? ")
        pids = await asyncio.to_thread(victims, hold)
        os.kill(pids["kernel"], signal.SIGKILL)
        told = await tools("wait", session="calc", **{"for": f"done={asked['exec_id']}"})
        assert told["exit_code"] != 0, told
        again = await tools("read", session="calc", exec_id=asked["exec_id"])
        assert (again["state"], again["error"]["ename"]) == ("shell_ended", "KernelEnded")


async def test_a_kernel_that_dies_before_it_is_up_ends_the_wait_for_it(hold: HomeForTests) -> None:
    async with on_stdio(hold, ERAS[0], "--wait-max", f"{LONG}s") as tools:
        made = await tools("run", name="calc", kernel="python3")
        call = asyncio.create_task(tools("exec", session="calc", command="1"))
        os.kill(made["pid"], signal.SIGKILL)
        told = await result(call)
        assert told["exit_code"] != 0, told
        assert told.get("code", "conflict") == "conflict", told


async def test_killed_at_any_moment_of_short_cells_what_is_told_as_done_was_done(
    hold: HomeForTests, tmp_path: Path, rounds: Rounds
) -> None:
    seed, chance = rounds.seed, rounds.random
    for n in range(rounds.count(1)):
        async with on_stdio(hold, chance.choice(ERAS), "--wait-max", f"{LONG}s") as tools:
            name = f"calc-{n}"
            await tools("run", name=name, kernel="python3")
            await tools("exec", session=name, command="0")
            found = (await asyncio.to_thread(hold, "status", name, "--json")).json
            victim = chance.choice([found["pid"], found["kernel"]["pid"]])
            asyncio.get_running_loop().call_later(chance.uniform(0, 0.4), os.kill, victim, signal.SIGKILL)
            for cell in range(200):  # far more than fit before it dies
                told = await result(
                    asyncio.create_task(
                        tools("exec", session=name, command=f"open({str(tmp_path / f'{n}-{cell}')!r}, 'w').close()")
                    )
                )
                if told["exit_code"] == 0:
                    assert (tmp_path / f"{n}-{cell}").exists(), (seed, told)
                else:
                    assert told["state"] in ("shell_ended", "refused"), (seed, told)
                    break
            else:
                raise AssertionError((seed, "it was killed, and nobody noticed"))
        # A kernel goes by itself, a moment after its recorder was killed.
        await asyncio.to_thread(until, lambda: hold("status", name, "--json").json["state"] == "exited", LONG)  # noqa: B023
