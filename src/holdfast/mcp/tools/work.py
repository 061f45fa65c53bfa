"""The tools for what is to be done: task, step, checkpoint, note, artifact, resume, claim."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ...model.errors import HoldfastError, invalid
from . import named_file
from .call import ToolCall

Json = dict[str, Any]

_ARTIFACT_SHOWN = 80_000  # characters of an artifact in one answer, about as much as a large read


async def resume(call: ToolCall, args: Json) -> Json:
    """The brief as text, and what to do next as data; the rest of the data says the same again."""
    more = {k: args[k] for k in ("project", "max_tokens") if args.get(k) is not None}
    told = await call.work.resume(args.get("task"), **more)
    return {"brief": told["text"], "next_action": told["next_action"]}


async def task(call: ToolCall, args: Json) -> Json:
    args, more = _apart(args)
    do, project = args["do"], args.get("project")
    more |= {"why": args["why"]} if args.get("why") else {}
    if do == "ls":
        return await _ask(call, "task_ls", project, **_without(more, "why"))
    if do == "next":
        return await _next(call, project, more)
    named = args.get("task")
    if do == "add":
        return await _ask(call, "task_add", project, **({"id": named} if named else {}), **more)
    if not named:
        raise invalid(f"task {do} needs a task", "task ls lists them")
    if do == "show":
        return await _ask(call, "task_show", project, task=named)
    if do == "start":
        return await _start(call, project, named, more)
    if do == "done":
        return await _done(call, project, named, more)
    return await _ask(call, f"task_{do}", project, task=named, **more)


def _apart(args: Json) -> tuple[Json, Json]:
    """The tool's own arguments, and the rest of `more`: what is the tool's own counts there too, once."""
    args, more = dict(args), dict(args.get("more") or {})
    if "cwd" in more:
        raise invalid("the folder is the one you work in", "name the project instead")
    for known, own in (("project", "project"), ("task", "task"), ("id", "task"), ("why", "why")):
        if known not in more:
            continue
        value = more.pop(known)
        if args.get(own) is not None or not isinstance(value, str):
            raise invalid(f"{own} is given twice, or is no text", f"leave {known} out of `more`")
        args[own] = value
    return args, more


async def _ask(call: ToolCall, name: str, project: str | None, /, **more: Any) -> Json:
    """A call about the tasks of the current project."""
    answer: Any = await call.work.call(name, project=project, cwd=os.getcwd(), **more)
    return answer if isinstance(answer, dict) else {"tasks": answer}


def _without(more: Json, *names: str) -> Json:
    return {k: v for k, v in more.items() if k not in names}


async def _start(call: ToolCall, project: str | None, named: str, more: Json) -> Json:
    """A run to work in, by hand: held while a step of it is open, so that a silent agent blocks nobody for long."""
    try:
        made: Json = await _ask(call, "task_start", project, task=named, **more)
    except HoldfastError as e:
        if e.code != "not_found" or project is not None:
            raise
        # Work that belongs to no project has a name of its own, and is found again by it.
        known = {k: more[k] for k in ("params", "items", "why") if k in more}
        made = await call.work.call("begin_run", task=named, **known)
    return made


async def _next(call: ToolCall, project: str | None, more: Json) -> Json:
    """The first task that is ready and that nobody else took in the meantime."""
    for ready in (await _ask(call, "task_ls", project, status="ready"))["tasks"]:
        try:
            made: Json = await _ask(call, "task_start", project, task=ready["task_id"], **more)
            return {"task_id": ready["task_id"], **made}
        except HoldfastError as e:
            if e.code not in ("busy", "conflict", "fenced"):
                raise
    return {"run": None, "next": "nothing is ready; task ls says what is blocked"}


async def _done(call: ToolCall, project: str | None, named: str, more: Json) -> Json:
    """Run the verification and finish. One that takes longer than the client waits goes on: the same call joins it."""
    under_way, key = call.agent.verifying, f"{project or ''}/{named}"
    if key not in under_way:
        done = call.work.tasks.done(named, project=project, outcome=more.get("outcome"), why=more.get("why"))
        under_way[key] = asyncio.ensure_future(done)
    await call.waiting(asyncio.wait({under_way[key]}, timeout=call.limit), call.limit, f"verifying {named}")
    if not under_way[key].done():
        return {"task_id": named, "state": "verifying", "next": "task do=done again"}
    made: Json = under_way.pop(key).result()
    return made


async def step(call: ToolCall, args: Json) -> Json:
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
        seen = str(args.get("evidence") or "").strip()
        more |= {"error": seen or why or "", "known": bool(seen), "why": why}
    else:
        if not args.get("outcome"):
            raise invalid("did it happen?", "outcome is done, not_done or failed, with evidence")
        more |= {"outcome": args["outcome"], "result": args.get("result"), "evidence": args.get("evidence") or why}
    answer: Json = await call.work.call(f"step_{do}", **more)
    return answer or {"key": key}


async def checkpoint(call: ToolCall, args: Json) -> Json:
    run = args["run"]
    if args.get("state") is not None:
        saved: Json = await call.work.call("checkpoint_save", run=run, state=args["state"], label=args.get("label"))
        return saved
    found: Json = await call.work.call("state_at", run=run)
    return {"run": run, "at": found["at"], "state": found["state"]}


async def note(call: ToolCall, args: Json) -> Json:
    kept = await call.work.call("log_append", run=args["run"], body=args["text"], kind=args.get("kind") or "note")
    return {"seq": kept["seq"]}


async def artifact(call: ToolCall, args: Json) -> Json:
    run, name = args["run"], args.get("name")
    if args.get("content") is not None or args.get("path"):
        name = name or os.path.basename(str(args.get("path") or ""))
        if not name:
            raise invalid("an artifact needs a name", "name: report.md")
        content = await _content(call, args)
        if isinstance(content, dict):
            return content
        put: Json = await call.work.put_artifact(run, name, content)
        return put
    if not name:
        return {"artifacts": await call.work.call("artifact_ls", run=run)}
    content = await call.work.artifact(run, name)
    text = content.decode("utf-8", "replace")
    told: Json = {"name": name, "size": len(content), "content": text[:_ARTIFACT_SHOWN], "untrusted": ["content"]}
    return told | ({"cut": True} if len(text) > _ARTIFACT_SHOWN else {})


async def _content(call: ToolCall, args: Json) -> bytes | Json:
    if args.get("content") is not None:
        return str(args["content"]).encode("utf-8", "surrogateescape")
    return await named_file.content(call, args["run"], str(args["path"]))


async def claim(call: ToolCall, args: Json) -> Json:
    whose = {k: args[k] for k in ("task", "run") if args.get(k)}
    what = {k: args[k] for k in ("port", "file", "pid", "command", "session") if args.get(k) is not None}
    if args["do"] == "add":
        return _shown(await call.work.add_claim(**whose, **what))
    if what:
        raise invalid(f"check looks at all claims of a task or run, not at one {next(iter(what))}", "give task or run")
    try:
        async with asyncio.timeout(call.limit):
            found = await call.work.check_claims(**whose)
    except TimeoutError:  # a command takes its time; the rest is known at once
        found = await call.work.check_claims(**whose, commands=False)
    return {"claims": [_shown(c) for c in found], "hold": all(c["state"] == "holds" for c in found)}


def _shown(claim: Json) -> Json:
    return {k: claim[k] for k in ("id", "kind", "state", "said", "evidence") if claim.get(k) is not None}
