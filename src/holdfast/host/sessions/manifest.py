"""From a request to start something to a manifest: every bad input gets its one line here. Pure but for the id."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from ...model import ids, limits
from ...model.durations import duration_s
from ...model.errors import invalid
from ...system import programs

Json = dict[str, Any]

RESTART = ("never", "on-failure", "always")
_IDLE_TTL_MIN_S = 1.0  # below it a session would be reaped before anybody could attach


def size(value: object) -> tuple[int, int]:
    try:
        cols, rows = (int(v) for v in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise invalid(f"{value!r} is not a terminal size", "write COLSxROWS, for example 80x24") from None
    if not (1 <= cols <= limits.COLS_MAX and 1 <= rows <= limits.ROWS_MAX):
        raise invalid(f"a terminal of {cols}x{rows} is not possible", f"use 1x1 to {limits.COLS_MAX}x{limits.ROWS_MAX}")
    return cols, rows


def free_name(command: list[str], taken: Iterable[str]) -> str:
    """A name from the program's, with a number where it is taken."""
    base = re.sub(r"[^A-Za-z0-9._+@-]", "", os.path.basename(command[0])).lstrip(".-+")[:40] or "session"
    known = set(taken)
    if base not in known and not base.startswith(ids.PREFIXES):
        return base
    n = 2
    while f"{base}-{n}" in known:
        n += 1
    return f"{base}-{n}"


def check_command(command: object, env: dict[str, str]) -> list[str]:
    if command is None or command == []:
        return [env.get("SHELL") or "/bin/sh"]
    if not isinstance(command, list) or not all(isinstance(c, str) for c in command):
        raise invalid("a command is a list of words", "hold run -- PROGRAM ARG…")
    if not command[0]:
        raise invalid("the program's name is empty", "hold run -- PROGRAM ARG…")
    if any("\0" in c for c in command):
        raise invalid("an argument cannot contain a NUL byte", "pass it through a file or a pipe")
    return command


def check_env(env: object) -> dict[str, str]:
    if not isinstance(env, dict):
        raise invalid("an environment is a table of names and values", "-e NAME=VALUE")
    for key, value in env.items():
        if not key or "=" in key or "\0" in key or "\0" in str(value):
            raise invalid(f"{key[:40]!r} cannot be an environment variable", "-e NAME=VALUE")
    return {str(k): str(v) for k, v in env.items()}


def session_environment(env: dict[str, str], session_id: str, links: str, kind: str, home: str) -> dict[str, str]:
    """The starter's environment, with the few names that must follow the session instead of the starter."""
    out = dict(env)
    for name in ("HOLDFAST_SESSION", "HOLDFAST_OPERATOR"):  # who is inside acts as the session does
        out.pop(name, None)
    out["HOLDFAST_SESSION"] = session_id
    out["HOLDFAST_HOME"] = home
    if kind != "pipes":
        out["TERM"] = "xterm-256color"  # the terminal is our emulator, whatever the starter sits at
        out["COLORTERM"] = "truecolor"
        for name in (
            "TERM_PROGRAM",
            "TERM_PROGRAM_VERSION",
            "TMUX",
            "TMUX_PANE",
            "STY",
            "WINDOW",
            "LINES",
            "COLUMNS",
        ):
            out.pop(name, None)
        out["SSH_AUTH_SOCK"] = os.path.join(links, "ssh-agent")
        if re.fullmatch(r":\d+(\.\d+)?", env.get("DISPLAY", "")):
            out["DISPLAY"] = os.path.join(links, "display")
    return out


def recorder(spec: str) -> list[str]:
    """The program of a kernel session. -I: nothing of the caller's Python set-up has a say in it."""
    return [sys.executable, "-I", programs.JUPYTER, spec]


def recorder_environment(env: dict[str, str], host: Mapping[str, str]) -> dict[str, str]:
    """The recorder's own: the host's, and what makes it the session's. The kernel that it starts gets all of `env`."""
    ours = {name: host[name] for name in ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR") if name in host}
    return ours | {name: env[name] for name in ("HOLDFAST_SESSION", "HOLDFAST_HOME", "TERM")}


def manifest(
    request: Json,
    session_id: str,
    taken: Iterable[str],
    links: str,
    actor: Json,
    home: str,
    boot: str,
    now: float,
) -> Json:
    """The whole description of a new session; raises for whatever cannot be."""
    env = check_env(request.get("env", {}))
    command = check_command(request.get("command"), env)
    kernel = request.get("kernel")
    kind = "kernel" if kernel else "pipes" if request.get("pipes") else "terminal"
    taken = set(taken)
    name = request.get("name")
    name = ids.check_name(str(name)) if name is not None else free_name([kernel["spec"]] if kernel else command, taken)
    cwd = str(request.get("cwd") or "/")
    if not os.path.isabs(cwd):
        raise invalid(f"{cwd[:200]!r} is not an absolute folder", "--cwd DIR")
    restart = str(request.get("restart") or "never")
    if restart not in RESTART:
        raise invalid(f"{restart[:40]!r} is not a restart policy", "never, on-failure or always")
    idle = request.get("idle_ttl")
    idle_s = duration_s(str(idle)) if idle is not None else None
    if idle_s is not None and idle_s < _IDLE_TTL_MIN_S:
        raise invalid(f"an idle time of {idle_s:g} s is too short", f"at least {_IDLE_TTL_MIN_S:g} s")
    bounds = check_limits(request.get("limits"))
    inside = session_environment(env, session_id, links, kind, home)
    return {
        "v": 1,
        "id": session_id,
        "request": request.get("request") or ids.new("req_"),
        "name": name,
        "kind": kind,
        "generation": 1,
        "command": recorder(kernel["spec"]) if kernel else command,
        "cwd": cwd,
        "env": inside,
        "size": list(size(request.get("size") or limits.SIZE_DEFAULT)),
        "restart": restart,
        "idle_ttl_s": idle_s,
        "limits": {"pids": bounds["pids"] or limits.PIDS_MAX, "memory": bounds["memory"]},
        "retain_bytes": _retain(bounds["log"]),
        "rlimits": _rlimits(request.get("rlimits") or {}),
        "umask": _umask(request.get("umask", 0o022)),
        "created_at": now,
        "started_at": now,
        "started_by": actor["operator"],
        "acts_as": request.get("acts_as") or actor["operator"],
        "token": ids.new("", 26),
        "boot": boot,
        "why": request.get("why"),
        "recipe": request.get("recipe"),
        "isolation": None,
        "door": request.get("door"),
        **({"kernel": kernel, "main_env": recorder_environment(inside, os.environ)} if kernel else {}),
        **({"record": "stderr"} if kind == "pipes" and request.get("record") else {}),
    }


# Variables that tell where a starter sat, or that a session has of its own: two starts may differ in them.
_SEAT = frozenset(
    {
        "HOLDFAST_SESSION",
        "HOLDFAST_HOME",
        "HOLDFAST_OPERATOR",
        "_",
        "SHLVL",
        "PWD",
        "OLDPWD",
        "TERM",
        "COLUMNS",
        "LINES",
        "SSH_CLIENT",
        "SSH_CONNECTION",
        "SSH_TTY",
        "SSH_AUTH_SOCK",
        "TMUX",
        "TMUX_PANE",
        "WINDOWID",
        "INVOCATION_ID",
        "JOURNAL_STREAM",
    }
)


def alike(manifest: Json, request: Json, authors: Iterable[str]) -> bool:
    """Whether a session on pipes was started just as this request asks: the same words, folder and surroundings, and
    bound by these authors at least."""

    def given(env: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in env.items() if name not in _SEAT}

    known = ("kind", "generation", "command", "cwd", "umask", "rlimits", "isolation")
    asked = ("pipes", 1, request.get("command"), request.get("cwd"), request.get("umask"), request.get("rlimits"), None)
    return (
        tuple(manifest.get(key) for key in known) == asked
        and given(manifest["env"]) == given(check_env(request.get("env", {})))
        and set(authors) <= set(manifest.get("bound_by") or ())
    )


def is_manifest(found: Json, session_id: str) -> bool:
    """Whether what lies in a session's folder is what `manifest` makes: one broken file must not stop a whole host."""
    shape = found.get("size")
    return (
        found.get("id") == session_id
        and all(isinstance(found.get(key), str) for key in ("name", "kind", "token", "cwd", "started_by", "acts_as"))
        and all(isinstance(found.get(key), int | float) for key in ("created_at", "started_at", "generation"))
        and isinstance(found.get("command"), list)
        and isinstance(found.get("env"), dict)
        and isinstance(shape, list)
        and [type(n) for n in shape] == [int, int]
        and found.get("restart") in RESTART
        and "idle_ttl_s" in found
    )


def check_limits(asked: object) -> dict[str, int]:
    """Processes, memory and log that a start asks for, in bytes and counts; 0 for each that it leaves open."""
    given = {} if asked is None else asked
    if not isinstance(given, dict):
        raise invalid("limits are a table of names and numbers", "--limit pids=100")
    found = {}
    for key in ("pids", "memory", "log"):
        value = 0 if given.get(key) is None else given[key]
        if not _is_count(value):
            raise invalid(f"{str(value)[:40]!r} is not a limit for {key}", f"--limit {key}=NUMBER")
        found[key] = int(value)
    return found


def _retain(asked: int) -> int:
    wanted = asked or limits.RETAIN_BYTES
    least = 2 * limits.SEGMENT_BYTES
    if wanted < least:
        raise invalid(f"a log of {wanted} bytes is too small", f"at least {least >> 20}M")
    return wanted


def _rlimits(asked: object) -> Json:
    """The starter's own resource limits, as it read them: name, soft and hard."""
    if not isinstance(asked, dict) or not all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(v, int) and -1 <= v < 1 << 63 for v in pair)
        for pair in asked.values()
    ):
        raise invalid("resource limits are names with a soft and a hard number each", "leave them out")
    return asked


def _umask(asked: object) -> int:
    if isinstance(asked, bool) or not isinstance(asked, int) or not 0 <= asked <= 0o777:
        raise invalid(f"{str(asked)[:40]!r} is not a umask", "leave it out")
    return asked


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
