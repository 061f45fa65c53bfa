"""The agent programs that can be connected: their files, the files' formats, and what is written there. Pure.

| program | user scope | project scope | form |
|---|---|---|---|
| claude | ~/.claude.json, ~/.claude/settings.json | .mcp.json, .claude/settings.json | JSON |
| codex | ~/.codex/config.toml | .codex/config.toml | TOML |
| cursor | ~/.cursor/mcp.json | .cursor/mcp.json | JSON with comments |
| vscode | Code/User/mcp.json in the configuration folder | .vscode/mcp.json | JSON with comments |
"""

from __future__ import annotations

import os
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Json = dict[str, Any]

NAMES = ("claude", "codex", "cursor", "vscode")
ENTRY = "holdfast"  # the server's name in all of them

# Claude Code's events, the tools of the matcher, and the hook's time limit: longer than the hook itself waits
# (cli/agents/hook.py), so that the hook gives up first. SessionEnd would have 1.5 s by default.
HOOKS: tuple[tuple[str, str | None, int], ...] = (
    ("PermissionRequest", None, 330),
    ("PreToolUse", "AskUserQuestion", 90),
    ("PostToolUse", None, 30),
    ("PostToolUseFailure", None, 30),
    ("Notification", None, 30),
    ("UserPromptSubmit", None, 30),
    ("SessionStart", None, 60),
    ("PreCompact", None, 30),
    ("Stop", None, 30),
    ("SessionEnd", None, 10),
)

# What Codex passes to the servers it starts; everything else has to be named in `env`.
CODEX_PASSES = ("HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ")


class Server:
    """How Holdfast's MCP server is started: the same for every program."""

    __slots__ = ("args", "command", "env")

    def __init__(self, hold: list[str], name: str, env: Mapping[str, str]) -> None:
        self.command, self.args, self.env = hold[0], [*hold[1:], "mcp", "--name", name], dict(env)

    def entry(self, **first: str) -> Json:
        entry: Json = {**first, "command": self.command, "args": self.args}
        return {**entry, "env": self.env} if self.env else entry


class Value:
    """One value in a file: a member at `path`, or (`append`) an item of the array there."""

    __slots__ = ("append", "path", "value")

    def __init__(self, path: tuple[str, ...], value: Any, append: bool = False) -> None:
        self.path, self.value, self.append = path, value, append


class File:
    """One file of a program, and its wanted values. `form` is json, jsonc or toml; `private` is a new file's mode."""

    __slots__ = ("form", "path", "private", "values")

    def __init__(self, path: str, form: str, values: list[Value], private: bool) -> None:
        self.path, self.form, self.values, self.private = path, form, values, private


def files(client: str, scope: str, hold: list[str], env: Mapping[str, str], places: Places) -> list[File]:
    """The files of a program in a scope, with the values they should hold."""
    user = scope == "user"
    server = Server(hold, client, env)
    if client == "claude":
        settings = os.path.join(places.claude if user else os.path.join(places.project, ".claude"), "settings.json")
        entry = Value(("mcpServers", ENTRY), server.entry(type="stdio"))
        hooks = [Value(("hooks", event), group, append=True) for event, group in claude_hooks(hold, env)]
        servers = places.claude_json if user else os.path.join(places.project, ".mcp.json")
        return [File(servers, "json", [entry], user), File(settings, "json", hooks, user)]
    if client == "codex":
        path = os.path.join(places.codex if user else os.path.join(places.project, ".codex"), "config.toml")
        return [File(path, "toml", [Value(("mcp_servers", ENTRY), server.entry())], user)]
    if client == "cursor":
        folder = places.home if user else places.project
        values = [Value(("mcpServers", ENTRY), server.entry())]
        return [File(os.path.join(folder, ".cursor", "mcp.json"), "jsonc", values, user)]
    folder = os.path.join(places.config, "Code", "User") if user else os.path.join(places.project, ".vscode")
    values = [Value(("servers", ENTRY), server.entry(type="stdio"))]
    return [File(os.path.join(folder, "mcp.json"), "jsonc", values, user)]


def claude_hooks(hold: list[str], env: Mapping[str, str]) -> list[tuple[str, Json]]:
    """(event, group) for Claude Code's settings; the command is one line of shell."""
    words = [*hold, "hook", "claude"]
    command = shlex.join(["env", *(f"{k}={v}" for k, v in env.items()), *words] if env else words)
    found = []
    for event, matcher, timeout_s in HOOKS:
        hook: Json = {"type": "command", "command": command, "timeout": timeout_s}
        found.append((event, {"matcher": matcher, "hooks": [hook]} if matcher else {"hooks": [hook]}))
    return found


def is_ours(group: object) -> bool:
    """Whether any Holdfast installation wrote this group of Claude Code's hooks."""
    hooks = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(hooks, list) or len(hooks) != 1 or not isinstance(hooks[0], dict):
        return False
    command = hooks[0].get("command")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return False
    program = words[-3] if words[-2:] == ["hook", "claude"] and len(words) > 2 else ""
    return os.path.basename(program) in ("hold", "holdfast", "holdfast.cli.main")


def is_our_server(entry: object) -> bool:
    """Whether an entry named `holdfast` starts Holdfast's server, from any installation and with any additions."""
    if not isinstance(entry, dict) or not isinstance(entry.get("args"), list):
        return False
    words = [str(word) for word in (entry.get("command"), *entry["args"])]
    program = words[words.index("mcp") - 1] if "mcp" in words[1:] else ""
    return os.path.basename(program) in ("hold", "holdfast", "holdfast.cli.main")


def home_of(value: object) -> str | None:
    """The home that a server's entry or a group of hooks names; None is the default home."""
    if not isinstance(value, dict):
        return None
    env = value.get("env")
    if isinstance(env, dict):
        return env.get("HOLDFAST_HOME")
    hooks = value.get("hooks")
    words = shlex.split(hooks[0]["command"]) if is_ours(value) and isinstance(hooks, list) else []
    return next((w.partition("=")[2] for w in words if w.startswith("HOLDFAST_HOME=")), None)


class Places:
    """The folders of a user's files, found as the programs find them."""

    def __init__(self, environ: Mapping[str, str], home: str, project: str) -> None:
        self.home, self.project = home, project
        custom = environ.get("CLAUDE_CONFIG_DIR")
        self.claude = os.path.abspath(custom) if custom else os.path.join(home, ".claude")
        self.claude_json = os.path.join(self.claude if custom else home, ".claude.json")
        self.codex = os.path.abspath(environ.get("CODEX_HOME") or os.path.join(home, ".codex"))
        self.config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")


def passed_on(client: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that a program gives its server, before the configuration's own variables.

    An active virtual environment of this shell is left out: the program may be started from a desktop.
    """
    env = {k: v for k, v in environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "HOLDFAST_HOME")}
    venv = environ.get("VIRTUAL_ENV")
    if venv and "PATH" in env:
        own = os.path.join(venv, "bin")
        env["PATH"] = os.pathsep.join(p for p in env["PATH"].split(os.pathsep) if p != own)
    return {k: env[k] for k in CODEX_PASSES if k in env} if client == "codex" else env
