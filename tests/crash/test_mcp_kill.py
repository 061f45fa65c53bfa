"""The MCP server killed in mid-call, and called hundreds of times: nothing that matters is its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest
from mcp.client.client import Client

from holdfast.mcp import agent as identity
from holdfast.mcp.server import build
from tests.support.agents import ERAS, Tools, children, descriptors, on_stdio, over_http, servers
from tests.support.home import HomeForTests, until, until_async
from tests.support.soak import Rounds
from tests.support.web import serve, token, web_pid


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_killed_in_mid_call_leaves_everything_as_it_was(
    hold: HomeForTests, tmp_path: Path, era: str
) -> None:
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    os.mkfifo(gate)
    with contextlib.suppress(Exception):  # the transport ends under it: how it says so is the SDK's matter
        async with on_stdio(hold, era, "--wait-max", "500") as tools:
            shell = await tools("run", name="shell")
            run = (await tools("task", do="start", task="job"))["run"]
            call = asyncio.create_task(
                tools(
                    "exec",
                    session="shell",
                    command=f"touch {mark}; cat {gate}; exit_with() {{ return 7; }}; exit_with",
                    step=f"{run}:once",
                    wait_s=500,
                )
            )
            await until_async(mark.exists, 60)
            for pid in servers(hold):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(Exception):
                await asyncio.wait_for(call, 30)
    until(lambda: not servers(hold))
    async with on_stdio(hold, era, "--wait-max", "60") as tools:
        seen = await tools("status", session="shell")
        assert (seen["id"], seen["pid"], seen["state"]) == (shell["id"], shell["pid"], "live")
        (begun,) = [e for e in seen["recent"] if e["did"] == "exec"]
        await asyncio.to_thread(gate.write_text, "went on\n")
        done = await tools("wait", session="shell", **{"for": f"done={begun['exec_id']}"})
        assert (done["exit_code"], done["output"]) == (7, "went on\n")
        again = await tools("step", run=run, do="ls")
        assert [s["key"] for s in again["steps"]] == ["once"], "the step is known to the one who comes after"


@pytest.mark.parametrize("era", ERAS)
async def test_many_calls_leak_no_process_and_no_descriptor(hold: HomeForTests, era: str, rounds: Rounds) -> None:
    async with on_stdio(hold, era) as tools:
        await tools("run", name="shell")
        await _mixture(tools, 10)  # connections that are kept are made
        (server,) = servers(hold)
        host = hold.daemon_pid()
        before = descriptors(server), len(children(server)), len(os.listdir(f"/proc/{server}/task")), descriptors(host)
        await _mixture(tools, rounds.count(40))
        after = descriptors(server), len(children(server)), len(os.listdir(f"/proc/{server}/task")), descriptors(host)
        assert after[:3] == before[:3]
        assert after[3] <= before[3] + 2, "the host's own connections come and go by one or two"
    until(lambda: not servers(hold))


@pytest.mark.parametrize("era", ERAS)
async def test_many_calls_over_http_leak_no_process_and_no_descriptor(
    hold: HomeForTests, era: str, rounds: Rounds
) -> None:
    url, secret = serve(hold), token(hold, "remote")

    def held() -> tuple[int, int, int]:
        web = web_pid(hold)
        assert web is not None
        return descriptors(web), len(children(web)), descriptors(hold.daemon_pid())

    async with over_http(url, secret, era) as tools:
        await tools("run", name="shell")
        await _mixture(tools, 10)
        before = held()
        await _mixture(tools, rounds.count(40))
        # What a request leaves behind for a moment (its stream, a connection kept for the next) is not kept for each.
        await until_async(lambda: all(now <= then + 3 for now, then in zip(held(), before, strict=True)), 30)
    calm = held()
    for _ in range(rounds.count(8)):  # connections that come and go leave nothing either
        async with over_http(url, secret, era) as tools:
            await tools("status")
            await tools.client.list_resources()
    await until_async(lambda: all(now <= then + 3 for now, then in zip(held(), calm, strict=True)), 60)


async def _mixture(tools: Tools, calls: int) -> None:
    for n in range(calls):
        if n % 4 == 0:
            assert (await tools("exec", session="shell", command="true"))["exit_code"] == 0
        elif n % 4 == 1:
            await tools("read", session="shell", max_tokens=10)
        elif n % 4 == 2:
            await tools("wait", session="shell", **{"for": "port=1"}, wait_s=0.01)
        else:
            with contextlib.suppress(Exception):
                await tools("exec", session="nowhere", command="true")


@pytest.mark.parametrize("era", ERAS)
async def test_many_calls_leave_no_task_behind(hold: HomeForTests, era: str, rounds: Rounds) -> None:
    agent = await identity.enrol_agent(str(hold.path), "inside")

    async def who(ctx: object) -> identity.Agent:
        return agent

    server, _ = build(who, 0.2)
    try:
        async with Client(server, mode=era, cache=None) as client:
            tools = Tools(client)
            await tools("run", name="shell")
            await _mixture(tools, 8)
            before = len(asyncio.all_tasks())
            await _mixture(tools, rounds.count(40))
            assert len(asyncio.all_tasks()) == before
    finally:
        agent.close()
