"""The tools' schemas, as an agent gets them. Every agent reads every word in every conversation: keep it short.

Written by hand instead of derived from signatures: a derived schema of the same tools is nearly twice as large.
A test checks `TOKENS_MAX`; it counts `CHARS_PER_TOKEN` characters of the compact JSON as one token.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

TOKENS_MAX = 1500
CHARS_PER_TOKEN = 3.5  # of JSON schema with English in it; tokenizers give 3.8 to 4.5, so this counts too many

_S: Json = {"type": "string"}
_I: Json = {"type": "integer"}
_N: Json = {"type": "number"}
_B: Json = {"type": "boolean"}
_O: Json = {"type": "object"}
_L: Json = {"type": "array", "items": {"type": "string"}}
_ANY: Json = {}
_EFFECT: Json = {"enum": ["none", "idempotent", "verifiable", "unsafe"]}


def _said(kind: Json, text: str) -> Json:
    return {**kind, "description": text}


def _tool(text: str, required: str = "", /, **properties: Json) -> Json:
    schema: Json = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required.split()
    return {"description": text, "inputSchema": schema}


TOOLS: dict[str, Json] = {
    "status": _tool(
        "What runs, observed now: sessions, activity, ports, exit codes, who holds the controls. "
        "For one session also processes and recent acts.",
        session=_S,
    ),
    "run": _tool(
        "Start a program (shell source) that outlives you; else a shell, or a kernel (python3), for exec.",
        command=_S,
        kernel=_S,
        name=_S,
        cwd=_S,
        why=_S,
    ),
    "exec": _tool(
        "Run a command in a session's shell, or code in its kernel: exact exit code, output. If not done in time: "
        "wait for=done=EXEC_ID. "
        "step=RUN:KEY makes it a durable step, done once.",
        "session command",
        session=_S,
        command=_S,
        wait_s=_N,
        max_tokens=_I,
        step=_S,
        effect=_EFFECT,
        why=_S,
    ),
    "read": _tool(
        "Read output without consuming it: its end, or from an offset; the screen; a command's result.",
        "session",
        session=_S,
        exec_id=_S,
        max_tokens=_I,
        screen=_B,
        **{"from": _I},
    ),
    "wait": _tool(
        "Wait for an event; on timeout call again with from=offset.",
        "for",
        session=_S,
        wait_s=_N,
        **{"for": _said(_S, "exit, done=EXEC_ID, input, quiet=S, port=N, text=RE2, answer=ASK"), "from": _I},
    ),
    "send": _tool(
        "Type into a session. Passwords are for people.",
        "session",
        session=_S,
        text=_S,
        enter=_B,
        keys=_said(_L, "Tab, Up, C-c"),
        why=_S,
    ),
    "kill": _tool(
        "End a session's process tree, or signal it.",
        "session",
        session=_S,
        signal=_S,
        why=_S,
    ),
    "ports": _tool("Listening ports, with their sessions.", port=_I),
    "ask": _tool(
        "Ask a person; if still open: wait for=answer=ASK.",
        "text",
        text=_S,
        options=_L,
        session=_S,
        wait_s=_N,
    ),
    "resume": _tool(
        "Begin here: the status of the work, checked against what runs.",
        task=_S,
        project=_S,
        max_tokens=_I,
    ),
    "task": _tool(
        "start returns a run for steps and notes; done runs the verification.",
        "do",
        do={"enum": ["ls", "show", "add", "start", "next", "done", "fail", "block", "unblock", "retry", "cancel"]},
        task=_S,
        project=_S,
        more=_said(_O, "add: title, contract, after, phase; block: question"),
        why=_S,
    ),
    "step": _tool(
        "Record intent before an effect, outcome after. begin returns execute, reuse (already done) or in_doubt: "
        "check, then settle.",
        "run do",
        run=_S,
        do={"enum": ["begin", "end", "fail", "settle", "ls"]},
        key=_S,
        effect=_EFFECT,
        args=_ANY,
        result=_ANY,
        outcome={"enum": ["done", "not_done", "failed"]},
        evidence=_S,
        why=_S,
    ),
    "checkpoint": _tool(
        "Save (with state) or show a run's state.",
        "run",
        run=_S,
        label=_S,
        state=_said(_O, "goal, constraints, plan, current_step, context, open_paths, resume_point"),
    ),
    "note": _tool(
        "A note for the next worker.",
        "run text",
        run=_S,
        text=_S,
        kind={"enum": ["decision", "learned", "rejected", "question"]},
    ),
    "artifact": _tool(
        "Store (content or path), read or list a run's files.",
        "run",
        run=_S,
        name=_S,
        content=_S,
        path=_S,
    ),
    "claim": _tool(
        "Record a fact, or check which facts still hold.",
        "do",
        do={"enum": ["add", "check"]},
        task=_S,
        run=_S,
        session=_S,
        port=_I,
        file=_S,
        pid=_I,
        command=_S,
    ),
}


def listed(*, paths: bool = True) -> list[Json]:
    """The tools for `tools/list`; without `paths` for a client on another machine."""
    return [
        {
            "name": name,
            "description": tool["description"],
            "inputSchema": tool["inputSchema"] if paths else _without_paths(name, tool["inputSchema"]),
            **({"annotations": {"readOnlyHint": True}} if name in _LOOKING else {}),
        }
        for name, tool in TOOLS.items()
    ]


def _without_paths(name: str, schema: Json) -> Json:
    left_out = _PATHS.get(name)
    return schema | {"properties": {k: v for k, v in schema["properties"].items() if k != left_out}}


_PATHS = {"artifact": "path", "claim": "file"}  # arguments that name a file to be opened
_LOOKING = frozenset({"status", "read", "wait", "ports", "resume"})
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def fault(name: str, args: Json) -> tuple[str, str] | None:
    """The error in a call's arguments (message, hint), or None."""
    schema: Json = TOOLS[name]["inputSchema"]
    known: Json = schema["properties"]
    unknown = sorted(set(args) - set(known))
    if unknown:
        return f"{name} has no argument {unknown[0][:60]!r}", f"it takes {', '.join(known)}"
    missing = [key for key in schema.get("required", ()) if args.get(key) is None]
    if missing:
        return f"{name} needs {', '.join(missing)}", f"it takes {', '.join(known)}"
    for key, value in args.items():
        if value is not None and (wrong := _wrong(known[key], value)):
            return f"{key} of {name} is {wrong}", "see the tool's schema"
    return None


def _wrong(schema: Json, value: Any) -> str | None:
    if "enum" in schema:
        return None if value in schema["enum"] else f"one of {', '.join(schema['enum'])}, not {str(value)[:40]!r}"
    wanted = schema.get("type")
    if wanted is None:
        return None
    if not isinstance(value, _TYPES[wanted]) or (isinstance(value, bool) and wanted != "boolean"):
        return f"of type {wanted}, not {type(value).__name__}"
    if isinstance(value, list) and not all(isinstance(item, str) for item in value):
        return "a list of strings"
    return None
