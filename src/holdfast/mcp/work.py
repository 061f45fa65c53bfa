"""The tools for what is to be done: task, step, checkpoint, note, artifact, resume, claim."""

from __future__ import annotations

import os
from typing import Any

from ..model.errors import HoldfastError, invalid
from .call import Call

Json = dict[str, Any]

_ARTIFACT_SHOWN = 80_000  # characters of an artifact in one answer, about as much as a large read
_ARTIFACT_READ_MAX = 64 << 20  # bytes of a file that is kept through this process: larger ones with hold artifact put


async def resume(call: Call, args: Json) -> Json:
    more = {k: args[k] for k in ("task", "project", "max_tokens") if args.get(k) is not None}
    return _named("brief", await call.work.call("resume", **more))


async def task(call: Call, args: Json) -> Json:
    do, more = args["do"], dict(args.get("more") or {})
    if args.get("why"):
        more.setdefault("why", args["why"])
    if do in ("ls", "add", "next"):
        more |= {"project": args["project"]} if args.get("project") else {}
    elif not args.get("task"):
        raise invalid(f"task {do} needs a task", "task ls lists them")
    if args.get("task"):
        more["id" if do == "add" else "task"] = args["task"]
    if do in ("start", "next"):
        more.setdefault("worker", call.agent.name)
    return _named("tasks" if do == "ls" else "task", await call.work.call(f"task_{do}", **more))


async def step(call: Call, args: Json) -> Json:
    do, run, key, why = args["do"], args["run"], args.get("key"), args.get("why")
    if do == "ls":
        steps = await call.work.call("step_ls", run=run)
        return {"steps": [{k: s[k] for k in ("key", "state", "effect", "tries", "action")} for s in steps]}
    if not key:
        raise invalid(f"step {do} needs the step's key", "its own name within the run, such as copy:batch-2")
    more: Json = {"run": run, "key": key}
    if do == "begin":
        more |= {"effect": args.get("effect") or "unsafe", "args": args.get("args"), "why": why, "action": why}
    elif do == "end":
        more |= {"result": args.get("result"), "why": why}
        if args.get("effect") == "none":
            more |= {"effect": "none", "args": args.get("args")}
    elif do == "fail":
        # Without evidence nobody knows whether it happened: then it is in doubt, not free to run again.
        more |= {"error": args.get("evidence") or why or "", "known": bool(args.get("evidence")), "why": why}
    else:
        if not args.get("outcome"):
            raise invalid("did it happen?", "outcome is done, not_done or failed, with evidence")
        more |= {"outcome": args["outcome"], "result": args.get("result"), "evidence": args.get("evidence") or why}
    answer: Json = await call.work.call(f"step_{do}", **more)
    return answer or {"key": key}


async def checkpoint(call: Call, args: Json) -> Json:
    run = args["run"]
    if args.get("state") is not None:
        saved: Json = await call.work.call("checkpoint_save", run=run, state=args["state"], label=args.get("label"))
        return saved
    found: Json = await call.work.call("state_at", run=run)
    return {"run": run, "at": found["at"], "state": found["state"]}


async def note(call: Call, args: Json) -> Json:
    kept = await call.work.call("log_append", run=args["run"], body=args["text"], kind=args.get("kind") or "note")
    return {"seq": kept["seq"]}


async def artifact(call: Call, args: Json) -> Json:
    run, name = args["run"], args.get("name")
    if args.get("content") is not None or args.get("path"):
        content = _content(args)
        name = name or os.path.basename(str(args.get("path") or ""))
        if not name:
            raise invalid("an artifact needs a name", "name: report.md")
        put: Json = await call.work.put_artifact(run, name, content)
        return put
    if not name:
        return {"artifacts": await call.work.call("artifact_ls", run=run)}
    content = await call.work.artifact(run, name)
    text = content.decode("utf-8", "replace")
    told: Json = {"name": name, "size": len(content), "content": text[:_ARTIFACT_SHOWN], "untrusted": ["content"]}
    return told | ({"cut": True} if len(text) > _ARTIFACT_SHOWN else {})


def _content(args: Json) -> bytes:
    if args.get("content") is not None:
        return str(args["content"]).encode("utf-8", "surrogateescape")
    path = os.path.abspath(str(args["path"]))
    try:
        with open(path, "rb") as f:
            content = f.read(_ARTIFACT_READ_MAX + 1)
    except (OSError, ValueError) as e:
        raise HoldfastError("failed", f"cannot read {path}: {getattr(e, 'strerror', None) or e}", "name a file") from None
    if len(content) > _ARTIFACT_READ_MAX:
        raise invalid(f"{path} has more than {_ARTIFACT_READ_MAX:,} bytes", "hold artifact put takes it")
    return content


async def claim(call: Call, args: Json) -> Json:
    more = {k: v for k, v in args.items() if k != "do" and v is not None}
    return _named("claims", await call.work.call(f"claim_{args['do']}", **more))


def _named(name: str, answer: Any) -> Json:
    """An answer is always an object: what is not one gets a name."""
    return answer if isinstance(answer, dict) else {name: answer}
