"""Tests a connection: starts the configured server as the program would, and calls it.

The server is called with the MCP SDK's client; Claude Code's hook gets an event on stdin as from Claude Code.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess

from ....model.errors import HoldfastError
from . import agent_programs, change_plan, config_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .agent_programs import File

    Json = dict[str, Any]

ANSWER_S = 60.0  # a host that has to start first, on a machine that is busy; the programs themselves wait 10 to 30 s


def require_mcp() -> None:
    """Check for the MCP SDK before anything is written: without it there is no server to connect."""
    import importlib.util

    if importlib.util.find_spec("mcp") is None:
        raise HoldfastError("failed", "the MCP server is not installed", "pip install 'holdfast[mcp]'")


def prove(client: str, wanted: list[File], cwd: str, environ: Mapping[str, str]) -> Json:
    """Start and call what the program's files configure; raises if that fails."""
    base = agent_programs.passed_on(client, environ)
    seen: Json = {}
    for file in wanted:
        data = change_plan.read(config_files.read(file.path) or "", file.form)
        for value in file.values:
            if not value.append:
                seen["server"] = _server(client, _entry(data, value.path, file.path), cwd, base)
        if file.values[0].append:
            seen["hook"] = _hook(data, file.path, cwd, base)
    return seen


def _entry(data: Any, path: tuple[str, ...], where: str) -> Json:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(data.get("command"), str):
        raise HoldfastError(
            "failed", f"{where} has no server {agent_programs.ENTRY}", "another program changed it: try again"
        )
    return data


def _server(client: str, entry: Json, cwd: str, base: dict[str, str]) -> Json:
    import asyncio

    env = {**base, **entry.get("env", {})}
    try:
        return asyncio.run(asyncio.wait_for(_call(client, entry, env, cwd), ANSWER_S))
    except TimeoutError:
        raise _failed(entry, f"no answer within {ANSWER_S:g} s") from None
    except HoldfastError:
        raise
    except Exception as e:  # noqa: BLE001  the SDK has no root of its own for what can go wrong with a server
        raise _failed(entry, f"{_first(e)!s:.200}") from None


async def _call(client: str, entry: Json, env: dict[str, str], cwd: str) -> Json:
    from mcp import Client, Implementation, StdioServerParameters, stdio_client

    server = StdioServerParameters(command=entry["command"], args=entry.get("args", []), env=env, cwd=cwd)
    with open(os.devnull, "w") as errlog:  # noqa: ASYNC230  a device
        connection = Client(
            stdio_client(server, errlog=errlog), client_info=Implementation(name="holdfast-connect", version="1")
        )
        async with connection as session:
            tools = (await session.list_tools()).tools
            answer = await session.call_tool("status", {})
    if answer.is_error:
        words = " ".join(getattr(c, "text", "") for c in answer.content)
        raise _failed(entry, f"status failed: {words[:200]}")
    return {
        "command": [entry["command"], *entry.get("args", [])],
        "tools": [t.name for t in tools],
        "status": answer.structured_content,
    }


def _first(e: BaseException) -> BaseException:
    """The first plain exception inside nested exception groups."""
    while isinstance(e, BaseExceptionGroup) and e.exceptions:
        e = e.exceptions[0]
    return e


def _failed(entry: Json, why: str) -> HoldfastError:
    return HoldfastError(
        "failed",
        f"{entry['command']} does not answer as an MCP server: {why}",
        "the configuration is written; to undo it: hold connect … --undo",
    )


def _hook(data: Any, where: str, cwd: str, base: dict[str, str]) -> Json:
    """Call the hook with a SessionStart event, which changes nothing."""
    hooks = data.get("hooks") if isinstance(data, dict) else None
    if not isinstance(hooks, dict):
        hooks = {}
    ours = [g for g in hooks.get("SessionStart") or [] if agent_programs.is_ours(g)]
    if not ours:
        raise HoldfastError("failed", f"{where} has no Holdfast hook", "another program changed it: try again")
    command = ours[0]["hooks"][0]["command"]
    event = {
        "session_id": "hold-connect",
        "transcript_path": "",
        "cwd": cwd,
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        env=base,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(json.dumps(event).encode(), ANSWER_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise HoldfastError("failed", "the hook did not answer", "to undo: hold connect claude --undo") from None
    try:
        said = json.loads(out) if out.strip() else {}
    except ValueError:
        said = None
    if process.returncode != 0 or not isinstance(said, dict):
        line = err.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit {process.returncode}"]
        raise HoldfastError("failed", f"the hook failed: {line[0][:200]}", "to undo: hold connect claude --undo")
    brief = said.get("hookSpecificOutput", {}).get("additionalContext", "")
    return {
        "command": command,
        "events": sorted(e for e, g in hooks.items() if any(map(agent_programs.is_ours, g))),
        "brief_characters": len(brief),
    }
