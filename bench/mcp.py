"""What an agent waits for over MCP: `exec` of `true` beside the SDK's own no-op and polling tmux; a prompt."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from .ours import SHELL, Ours
from .peers import Tmux
from .result import Result, Target, spread

KEY = "mcp"
_WARM_UP = 5
_PEER = str(Path(__file__).with_name("mcp_peers.py"))


def measure(quick: bool) -> list[Result]:
    rounds, polls = (40, 6) if quick else (200, 30)
    with Ours() as ours, Tmux() as tmux:
        pane = tmux.hold(*SHELL)
        with open(os.devnull, "w") as quiet:
            return asyncio.run(_measure(ours, tmux, pane, rounds, polls, quiet))


async def _measure(ours: Ours, tmux: Tmux, pane: str, rounds: int, polls: int, quiet: TextIO) -> list[Result]:
    server = StdioServerParameters(command=sys.executable, args=["-m", "holdfast.cli.main", "mcp"], env=ours.env)
    words = json.dumps([tmux._base, pane])
    # -P: this folder has a module of the SDK's name.
    peer = StdioServerParameters(command=sys.executable, args=["-P", _PEER, words], env=tmux.env)
    exec_ms, noop_ms = [], []
    us, them = (Client(stdio_client(one, quiet), mode="legacy") for one in (server, peer))
    async with us, them:
        await us.call_tool("run", {"name": "shell", "command": f"exec {' '.join(SHELL)}"})
        for n in range(rounds + _WARM_UP):
            took = await _timed(us, "exec", session="shell", command="true")
            nothing = await _timed(them, "noop")
            if n >= _WARM_UP:
                exec_ms.append(took)
                noop_ms.append(nothing)
        poll_ms = [await _timed(them, "poll", command="true", n=n) for n in range(polls)]
        prompt_ms = [await _prompt(us) for _ in range(polls)]
    return [_exec(rounds, polls, exec_ms, noop_ms, poll_ms), _secret(polls, prompt_ms)]


async def _timed(client: Client, tool: str, **args: Any) -> float:
    began = time.monotonic()
    done = await client.call_tool(tool, args)
    took = time.monotonic() - began
    if done.is_error or done.structured_content["exit_code"] != 0:
        raise RuntimeError(f"{tool} ended as {done}")
    return took * 1e3


async def _prompt(client: Client) -> float:
    """From the call to the answer that a secret is wanted; then the prompt is left."""
    began = time.monotonic()
    answer = await client.call_tool("exec", {"session": "shell", "command": "read -s -p 'Password: ' x"})
    took = time.monotonic() - began
    done = answer.structured_content
    if done["state"] != "waiting_for_secret":
        raise RuntimeError(f"a password prompt was told as {done}")
    await client.call_tool("send", {"session": "shell", "keys": ["C-c"]})
    await client.call_tool("wait", {"session": "shell", "for": f"done={done['exec_id']}"})
    return took * 1e3


def _exec(rounds: int, polls: int, ours: list[float], noop: list[float], poll: list[float]) -> Result:
    mine, nothing, polled = map(statistics.median, (ours, noop, poll))
    return Result(
        key=KEY,
        name="exec of `true` over MCP stdio",
        unit="ms",
        ours=mine,
        peers={"the SDK's no-op tool": nothing, "a tool that polls tmux": polled},
        ratios={"the SDK's no-op tool": mine / nothing, "a tool that polls tmux": mine / polled},
        targets=(
            Target("ours minus the no-op", mine - nothing, 25.0, "lower", "ms"),
            Target("polling tmux ÷ ours", polled / mine, 20.0, "higher"),
        ),
        notes=(
            f"medians of {rounds} in turn with the no-op (polling tmux every 0.5 s: {polls}); the SDK's client for all",
            f"ours: {spread(ours)}",
            f"no-op: {spread(noop)}",
            f"polling: {spread(poll)}",
        ),
    )


def _secret(rounds: int, ours: list[float]) -> Result:
    mine = statistics.median(ours)
    return Result(
        key=f"{KEY}-prompt",
        name="a password prompt reported as such over MCP stdio",
        unit="ms",
        ours=mine,
        targets=(Target("from the call to the answer", mine, 300.0, "lower", "ms"),),
        notes=(f"medians of {rounds}: `read -s` in a bash session, to `waiting_for_secret`", f"ours: {spread(ours)}"),
    )
