"""A stand-in for Claude Code: reads its configuration and drives servers and hooks as the documentation says it does.

    python fake_claude.py SCRIPT.json

The script is a list of [event, fields]; each is told to the hooks that settings.json has for it, in the documented
way: JSON on stdin, exit 2 blocks, JSON on stdout decides. What would happen next is printed, one JSON line each. An
entry ["mcp", {"tool": …, "arguments": …}] calls a tool of the server that it is configured with.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]
TARGET = {
    "PreToolUse": "tool_name",
    "PermissionRequest": "tool_name",
    "SessionStart": "source",
    "Notification": "notification_type",
    "PreCompact": "trigger",
    "SessionEnd": "reason",
}


def settings(project: Path) -> list[Json]:
    home = Path(os.environ["HOME"])
    config = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    paths = [
        config / "settings.json",
        project / ".claude" / "settings.json",
        project / ".claude" / "settings.local.json",
    ]
    return [json.loads(p.read_text()) for p in paths if p.exists()]


def servers(project: Path) -> Json:
    """User scope below project scope, as it resolves a name that is in both."""
    home = Path(os.environ["HOME"])
    own = Path(os.environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    found: Json = json.loads(own.read_text()).get("mcpServers", {}) if own.exists() else {}
    shared = project / ".mcp.json"
    return {**found, **(json.loads(shared.read_text())["mcpServers"] if shared.exists() else {})}


def matches(matcher: str | None, word: str) -> bool:
    if matcher in (None, "", "*"):
        return True
    assert matcher is not None
    if re.fullmatch(r"[\w|-]+", matcher):
        return word in matcher.split("|")
    return re.search(matcher, word) is not None


def hooks_for(event: Json, project: Path) -> list[Json]:
    name = event["hook_event_name"]
    word = str(event.get(TARGET.get(name, ""), ""))
    groups = [g for s in settings(project) for g in s.get("hooks", {}).get(name, [])]
    return [h for g in groups if matches(g.get("matcher"), word) for h in g["hooks"] if h["type"] == "command"]


def run_hook(hook: Json, event: Json, project: Path) -> Json:
    """One hook: what it exited with, what it wrote; killed with everything it started when its time is up."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", hook["command"]],
        cwd=event["cwd"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "CLAUDE_PROJECT_DIR": str(project)},
    )
    timeout = float(os.environ.get("FAKE_CLAUDE_PATIENCE") or hook.get("timeout", 600))
    try:
        out, err = process.communicate(json.dumps(event).encode(), timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate()
        return {"timed_out": True}
    return {"code": process.returncode, "out": out.decode(), "err": err.decode()}


def outcome(event: Json, project: Path) -> Json:
    """What Claude Code would do after its hooks have spoken."""
    name, result = event["hook_event_name"], {"event": event["hook_event_name"]}
    for hook in hooks_for(event, project):
        ran = run_hook(hook, event, project)
        result["stderr"] = ran.get("err", "")
        if ran.get("timed_out") or ran["code"] not in (0, 2):
            result["hook"] = "timed out" if ran.get("timed_out") else f"failed with {ran['code']}"
            continue
        if ran["code"] == 2:
            return {**result, "blocked": ran["err"]}
        said = json.loads(ran["out"]).get("hookSpecificOutput", {}) if ran["out"].strip() else {}
        assert not said or said["hookEventName"] == name
        if said.get("additionalContext"):
            assert len(said["additionalContext"]) <= 10_000
            result["context"] = said["additionalContext"]
        if name == "PermissionRequest" and said.get("decision"):
            result["decision"] = said["decision"]
        if name == "PreToolUse" and said.get("permissionDecision"):
            result["decision"] = {
                "behavior": said["permissionDecision"],
                "message": said["permissionDecisionReason"],
                "input": said.get("updatedInput"),
            }
    if name in ("PermissionRequest", "PreToolUse") and "decision" not in result:
        result["decision"] = {"behavior": "own dialog"}
    return result


async def call(entry: Json, tool: str, arguments: Json) -> Json:
    from mcp import Client, Implementation, StdioServerParameters

    server = StdioServerParameters(
        command=entry["command"], args=entry.get("args", []), env={**os.environ, **entry.get("env", {})}
    )
    async with Client(server, client_info=Implementation(name="claude-code", version="2.1.0")) as session:
        answer = await session.call_tool(tool, arguments)
        return {"tool": tool, "error": answer.is_error, "result": answer.structured_content}


def main() -> None:
    project = Path.cwd()
    for name, fields in json.loads(Path(sys.argv[1]).read_text()):
        if name == "mcp":
            entry = servers(project)["holdfast"]
            told = asyncio.run(call(entry, fields["tool"], fields.get("arguments", {})))
        else:
            told = outcome(
                {
                    "session_id": "0b1c",
                    "transcript_path": "/nowhere.jsonl",
                    "cwd": str(project),
                    "permission_mode": "default",
                    "hook_event_name": name,
                    **fields,
                },
                project,
            )
        print(json.dumps(told), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
