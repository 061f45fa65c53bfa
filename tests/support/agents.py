"""The SDK's real MCP client against the real server, over stdio and over HTTP, in both eras of the protocol."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.support.home import HomeForTests

Json = dict[str, Any]
ERAS = ("legacy", "2026-07-28")
TIMEOUT_S = 60.0  # of one call: a busy machine, never a pace


class Refused(Exception):
    """A tool's structured error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}; {error['hint']}")
        self.code, self.message, self.hint, self.error = error["code"], error["message"], error["hint"], error


class Tools:
    """`await tools("exec", session=…)` is the tool's structured result, or raises Refused."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, /, progress: Any = None, **args: Any) -> Json:
        result = await self.client.call_tool(tool, args, read_timeout_seconds=TIMEOUT_S, progress_callback=progress)
        told: Json = result.structured_content
        assert isinstance(result.content[0], types.TextContent)
        assert json.loads(result.content[0].text) == told, "text and data say the same"
        assert result.is_error == ("code" in (told.get("error") or {}))  # a kernel's error is a result, and has none
        if result.is_error:
            assert set(told["error"]) >= {"code", "message", "hint"}
            raise Refused(told["error"])
        return told


def command(*words: str) -> tuple[str, list[str]]:
    return sys.executable, ["-m", "holdfast.cli.main", "mcp", *words]


@contextlib.asynccontextmanager
async def on_stdio(
    hold: HomeForTests,
    era: str = "legacy",
    *words: str,
    client: str = "mcp-tester",
    cwd: Path | None = None,
    env: Json | None = None,
    **options: Any,
) -> AsyncIterator[Tools]:
    program, args = command(*words)
    server = StdioServerParameters(command=program, args=args, env={**hold.env, **(env or {})}, cwd=cwd or hold.path)
    with (hold.path.parent / "mcp.err").open("a") as errors:
        transport = stdio_client(server, errors)
        async with Client(transport, mode=era, client_info=_info(client), cache=None, **options) as made:
            yield Tools(made)


@contextlib.asynccontextmanager
async def over_http(
    url: str, token: str, era: str = "legacy", *, client: str = "mcp-tester", **options: Any
) -> AsyncIterator[Tools]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT_S) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=era, client_info=_info(client), cache=None, **options) as made:
            yield Tools(made)


def _info(name: str) -> types.Implementation:
    return types.Implementation(name=name, version="1")


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [int(p) for p in (task / "children").read_text().split()]
    return found


def servers(hold: HomeForTests) -> list[int]:
    """The `hold mcp` processes that serve this home."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            mark = f"HOLDFAST_HOME={hold.path}".encode()
            if b"holdfast.mcp" in words and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


async def every_tool(tools: Tools, folder: Path) -> set[str]:
    """A round through all of them; what they say is checked in passing. The names that were called."""
    called: set[str] = set()

    async def call(tool: str, /, **args: Any) -> Json:
        called.add(tool)
        return await tools(tool, **args)

    started = await call("run", name="shell", cwd=str(folder), why="to work in")
    assert started["state"] == "live"
    assert started["cwd"] == str(folder)
    done = await call("exec", session="shell", command="echo one; exit_code() { return 3; }; exit_code", why="a try")
    assert (done["state"], done["exit_code"], done["output"]) == ("exited", 3, "one\n")
    assert "output" in done["untrusted"]
    sent = await call("send", session="shell", text="echo t''yped", enter=True, why="by hand")
    seen = await call("wait", session="shell", **{"for": "text=typed", "from": sent["from"], "wait_s": 30})
    assert seen["event"] == "text"
    assert "typed" in (await call("read", session="shell"))["text"]
    assert "typed" in (await call("read", session="shell", screen=True))["screen"]["text"]
    overview = await call("status")
    assert [s["session"] for s in overview["sessions"]] == ["shell"]
    assert (await call("status", session="shell"))["processes"]
    assert (await call("ports"))["ports"] == []
    asked = await call("ask", text="Which branch?", options=["main", "next"], wait_s=0)
    assert asked["state"] == "open"
    await _work(call)
    ended = await call("kill", session="shell", why="done")
    assert ended["state"] == "exited"
    return called


async def _work(call: Any) -> None:
    run = (await call("task", do="start", task="free-standing", why="to try"))["run"]
    assert (await call("step", run=run, do="begin", key="copy:1", args=["a"], why="copy a"))["decision"] == "execute"
    await call("step", run=run, do="end", key="copy:1", result={"rows": 3})
    again = await call("step", run=run, do="begin", key="copy:1", args=["a"])
    assert (again["decision"], again["result"]) == ("reuse", {"rows": 3})
    assert [s["key"] for s in (await call("step", run=run, do="ls"))["steps"]] == ["copy:1"]
    await call("checkpoint", run=run, state={"goal": "move it", "resume_point": "copy:2"}, label="half way")
    assert (await call("checkpoint", run=run))["state"]["goal"] == "move it"
    await call("note", run=run, text="rsync is not there", kind="learned")
    await call("artifact", run=run, name="report.md", content="# all well")
    assert (await call("artifact", run=run, name="report.md"))["content"] == "# all well"
    assert len((await call("artifact", run=run))["artifacts"]) == 1
    assert (await call("claim", do="add", run=run, session="shell"))["state"] == "holds"
    assert (await call("claim", do="check", run=run))["hold"] is True
    brief = await call("resume", task=run)
    assert "move it" in brief["brief"]
    assert "rsync is not there" in brief["brief"]
    assert brief["next_action"]["kind"]
