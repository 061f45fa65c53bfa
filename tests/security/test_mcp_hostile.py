"""What an agent over MCP, or the program it looks at, could send to break the server or to pass for somebody else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from tests.support.agents import ERAS, Refused, Tools, on_stdio
from tests.support.home import HomeForTests
from tests.support.operators import enrol
from tests.support.web import INITIALIZE


@pytest.mark.parametrize("era", ERAS)
async def test_names_that_are_not_text_do_not_end_the_server(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/bad\xff")
    async with on_stdio(hold, era) as tools:
        await tools("run", name="shell")
        done = await tools("exec", session="shell", command=f"cd {tmp_path}/bad* && (exec -a $'\\377x' sleep 600 &)")
        assert done["cwd"] == f"{tmp_path}/bad\N{REPLACEMENT CHARACTER}"
        assert "cwd" in done["untrusted"]
        seen = await tools("status", session="shell")
        assert any(p["command"].startswith("\N{REPLACEMENT CHARACTER}x") for p in seen["processes"])
        assert {"cwd", "processes"} <= set(seen["untrusted"]), "a program chooses both"


@pytest.mark.parametrize("kind", ["service", "human"])
async def test_a_client_that_is_called_like_a_person_or_a_service_is_neither(hold: HomeForTests, kind: str) -> None:
    enrol(hold, "deploy", kind, verbs=["view", "exec"], sessions=["*"])
    for words, client in (((), "deploy"), (("--name", "deploy"), "mcp-tester")):
        async with on_stdio(hold, "legacy", *words, client=client) as tools:
            assert (await tools("status"))["you"] == "deploy-mcp"
    (made,) = [o for o in hold.host.operators() if o["name"] == "deploy-mcp"]
    assert made["kind"] == "agent"
    enrol(hold, "ci", kind)
    enrol(hold, "ci-mcp", kind)
    async with on_stdio(hold, client="ci") as tools:
        with pytest.raises(Refused) as refused:
            await tools("status")
        assert refused.value.code == "not_allowed"


async def test_an_agent_answers_no_prompt_for_a_secret_with_single_keys(hold: HomeForTests) -> None:
    async with on_stdio(hold) as tools:
        await tools("run", name="shell")
        await _ask_for_a_secret(tools)
        for keys in (["h"], ["Enter"], ["C-m"], ["C-c", "h"]):
            with pytest.raises(Refused) as refused:
                await tools("send", session="shell", keys=keys)
            assert refused.value.code == "not_allowed"
        await tools("send", session="shell", keys=["C-c"])
        assert (await tools("exec", session="shell", command='echo "[$x]"'))["output"] == "[]\n"


async def _ask_for_a_secret(tools: Tools) -> None:
    done = await tools("exec", session="shell", command="read -rsp 'Password: ' x")
    assert done["state"] == "waiting_for_secret"


async def test_a_dialog_that_nobody_answers_ends_before_the_client_gives_up(hold: HomeForTests) -> None:
    async def silent(context: Any, params: Any) -> types.ElicitResult:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with on_stdio(hold, "legacy", "--wait-max", "1s", elicitation_callback=silent) as tools:
        # 30 s is far past the limit of 1 s, and far below what a dialog may take elsewhere.
        result = await tools.client.call_tool("ask", {"text": "Which branch?"}, read_timeout_seconds=30)
        told = result.structured_content
        assert (told["state"], told["via"]) == ("open", "inbox")
        assert [i["id"] for i in hold.host.call("inbox")["items"]] == [told["ask"]]


async def test_arguments_that_are_given_twice_are_an_error_and_not_a_fault_of_ours(hold: HomeForTests) -> None:
    async with on_stdio(hold) as tools:
        for more in ({"project": 7}, {"cwd": "/"}, {"id": "other"}, {"task": "other"}, {"why": 7}):
            for do in ("add", "start", "block", "fail"):
                with pytest.raises(Refused) as refused:
                    await tools("task", do=do, task="t9", more={"title": "a title", **more})
                assert refused.value.code == "invalid"
        with pytest.raises(Refused) as refused:
            await tools("task", do="add", task="t9", more={"title": "a title", "project": "nowhere"})
        assert refused.value.code == "not_found", "what is given once counts wherever it stands"


@contextmanager
def _serving(hold: HomeForTests) -> Iterator[subprocess.Popen[bytes]]:
    """`hold mcp` on pipes, after the handshake."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    server = subprocess.Popen([sys.executable, "-m", "holdfast.cli.main", "mcp"], env=hold.env, **pipes)
    try:
        _say(server, INITIALIZE)
        assert server.stdout is not None
        server.stdout.readline()
        _say(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield server
    finally:
        server.kill()
        server.communicate()


def _say(server: subprocess.Popen[bytes], message: Any) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def test_a_client_that_vanishes_in_the_middle_leaves_no_traceback(hold: HomeForTests) -> None:
    call = {"name": "status", "arguments": {}}
    with _serving(hold) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.close()
        _say(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        assert server.wait(60) == 1, "at once, though its input is still open"
        assert len(server.stderr.read().splitlines()) == 1


def test_an_interrupt_ends_the_server_though_nobody_closes_its_input(hold: HomeForTests) -> None:
    with _serving(hold) as server:
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == -signal.SIGINT
