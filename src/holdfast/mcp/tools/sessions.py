"""The tools for what runs: status, run, exec, read, wait, send, kill, ports."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Coroutine
from typing import Any

from ...client._async.host import AsyncSession, start_request
from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.times import rfc3339
from . import cell_output, session_text, token_budget
from .call import ToolCall
from .session_text import WAITING

Json = dict[str, Any]

_RECENT = 8  # acts of a session's timeline in its status: the last command, and who was there
_INBOX_SHOWN = 10  # open items in an overview
_SHELL = "/bin/bash"
_GIVE_UP = frozenset({"C-c", "C-d", "C-z", "C-\\"})  # keys that end a question for a secret, and answer none
_ANSWER_S = 0.5  # past the wait, for the answer to come: the least patient client still has as much again


async def status(call: ToolCall, args: Json) -> Json:
    me = call.agent.id
    if args.get("session"):
        found = await call.status(args)
        recent = (await call.host.timeline(found["id"], limit=_RECENT))["entries"]
        told = session_text.full(found, me) | {"recent": [session_text.entry(e) for e in recent]}
        return _marked(told, "prompt", "command", "cwd", "processes", "recent")
    seen = await call.host.call("status")
    told = {"you": call.agent.name, **session_text.overview(seen["sessions"], me)}
    waiting = (await call.host.call("inbox"))["items"]
    if waiting:
        told["inbox"] = [session_text.item(i) for i in waiting[:_INBOX_SHOWN]]
    return told | ({"untrusted": ["prompt"]} if any("prompt" in s for s in told["sessions"]) else {})


async def run(call: ToolCall, args: Json) -> Json:
    command = args.get("command")
    if command and args.get("kernel"):
        raise invalid("a session runs a command or a kernel", "leave one out; exec gives the kernel its code")
    request = start_request(
        [_SHELL, "-c", command] if command else None,
        name=args.get("name"),
        cwd=args.get("cwd"),
        env=None,
        pipes=False,
        size=None,
        restart="never",
        idle_ttl=None,
        acts_as=None,
        why=args.get("why"),
        pids_max=None,
        memory_max=None,
        kernel=args.get("kernel"),
    )
    made = await call.host.call("run", standing=True, timeout=call.patience(None), **request)
    if "ask" in made:  # a person is asked, or has said yes this moment
        return session_text.waiting(made)
    return session_text.session(made, call.agent.id) | {"pid": made["pid"], "cwd": made["cwd"]}


async def exec_(call: ToolCall, args: Json) -> Json:
    session = call.session(args)
    seconds = call.patience(args.get("wait_s"))
    doing = _as_step(call, session, args, seconds) if args.get("step") else _plain(call, session, args, seconds)
    result = await call.waiting(doing, seconds, f"exec in {session.name}")
    return await _result(session, result, args.get("max_tokens"))


async def _plain(call: ToolCall, session: AsyncSession, args: Json, seconds: float) -> Json:
    exec_id, since = ids.new("exe_"), str(rfc3339(time.time()))
    doing = session.exec_raw([args["command"]], seconds, args.get("why"), exec_id)
    return await _in_time(call, session.id, exec_id, since, seconds, doing)


async def _in_time(
    call: ToolCall, session: str, exec_id: str, since: str, seconds: float, doing: Coroutine[Any, Any, Json]
) -> Json:
    """A command's state before the client gives up, also where its shell takes long to come to its prompt.

    The host says for certain whether the command was typed; one that was not never will be.
    """
    try:
        async with asyncio.timeout(seconds + _ANSWER_S):
            return await doing
    except TimeoutError:
        known = {"session": session, "exec_id": exec_id}
        if (await call.host.call("exec_outcome", since=since, **known))["known"] == "never":
            raise HoldfastError(
                "busy",
                "the session's shell did not come to its prompt in time; nothing was run",
                "call again, or look: status, read screen=true",
            ) from None
        result: Json = await call.host.call("exec_result", **known)
        return result


async def _as_step(call: ToolCall, session: AsyncSession, args: Json, seconds: float) -> Json:
    """Done once, whoever asks again: what it gave before, or the one that still runs."""
    run, found, key = str(args["step"]).partition(":")
    if not (run and found and key):
        raise invalid("step is RUN:KEY", "task start gives a run")
    since = str(rfc3339(time.time()))
    words, why, effect = [args["command"]], args.get("why"), args.get("effect") or "unsafe"
    plan = await call.work.exec_begin(run, key, session.id, words, effect=effect, why=why)
    about = {"run": plan["run"], "key": key, "decision": plan["decision"]}
    if plan["decision"] == "reuse":
        kept = plan["result"]
        if not isinstance(kept, dict) or "exec_id" not in kept:
            raise HoldfastError("conflict", f"step {key!r} is done, and was no command", "use another key")
        more = await _cell_kept(call, str(kept.get("session") or session.id), str(kept["exec_id"]))
        return {**kept, **more, "state": "exited", "prompt": None, "step": about, "kept": kept.get("output") or ""}
    doing = call.work.exec_done(plan, words, timeout=seconds, why=why)
    try:
        result = await _in_time(call, plan["session"], plan["exec_id"], since, seconds, doing)
    except HoldfastError as e:
        await call.work.exec_refused(plan, e)
        raise
    await call.work.exec_end(plan, result)
    return {**result, "step": about}


async def _cell_kept(call: ToolCall, session: str, exec_id: str) -> Json:
    """What a kernel's cell put out back then, as far as its session still has it."""
    try:
        known = await call.host.call("exec_result", session=session, exec_id=exec_id)
    except HoldfastError:
        return {}
    return {key: known[key] for key in cell_output.KEYS if key in known}


async def _result(session: AsyncSession, result: Json, max_tokens: int | None) -> Json:
    """A command's state, exact code and output: its head and tail where it is long."""
    if result["state"] == WAITING:
        step = {"step": result["step"]} if "step" in result else {}
        return {"session": session.name, "exec_id": result["exec_id"], **session_text.waiting(result), **step}
    told: Json = {
        "session": session.name,
        "exec_id": result["exec_id"],
        "state": result["state"],
        "exit_code": result["exit_code"],
    }
    start, end, room = result["start"], result["end"], token_budget.budget(max_tokens)
    cell = cell_output.told(session.name, result, room // 2)
    if start is None:
        text, omitted = str(result.get("kept") or ""), list[dict[str, int]]()
    else:
        text, omitted = await _output(session, result, room // 2 if cell else room)
    told |= {"output": text, "end": end, "duration_ms": result["duration_ms"], "cwd": result["cwd"], **cell}
    if omitted:
        told["omitted"] = omitted
    if result["prompt"]:
        told["prompt"] = result["prompt"]
    if "step" in result:
        told["step"] = result["step"]
    if result["state"] == "running":
        told["next"] = f"wait for=done={result['exec_id']}"
    elif result["state"] == "waiting_for_secret":
        told["next"] = "a person types it in the inbox; wait for=done=" + result["exec_id"]
    return _marked(told, "output", "prompt", "cwd", "outputs", "error")


async def _output(session: AsyncSession, result: Json, most: int) -> tuple[str, list[dict[str, int]]]:
    """The text of a command within a budget, and what of it is left out."""
    start, end = result["start"], result["end"]
    inline = base64.b64decode(result["raw"]) if result.get("gone") == 0 else None  # small output comes with the result
    wanted = token_budget.ranges(start, end, most)
    parts: list[tuple[int, bytes]] = []
    for n, (a, b) in enumerate(wanted):
        try:
            data, at = (inline[a - start : b - start], a) if inline is not None else await _bytes(session, a, b)
        except HoldfastError:
            if "kept" not in result:
                raise
            return str(result["kept"]), []  # the session is gone; the step has the end of the output
        if len(wanted) == 2 and n == 0:
            data = token_budget.cut_end(data)
        elif len(wanted) == 2:
            at, data = _from_line(at, data)
        parts.append((at, data))
    if parts and parts[0][0] > start:
        parts.insert(0, (start, b""))  # what is gone at the beginning is left out too
    return token_budget.joined(parts, end)


def _from_line(at: int, data: bytes) -> tuple[int, bytes]:
    whole = token_budget.cut_start(data)
    return at + len(data) - len(whole), whole


async def _bytes(session: AsyncSession, start: int, end: int) -> tuple[bytes, int]:
    """What is still there between two offsets, and where it begins."""
    data, at = b"", start
    async for chunk in session.output(start, end=end):
        if chunk.gap:
            data, at = b"", chunk.end
        else:
            data += chunk.data
    return data, at


async def read(call: ToolCall, args: Json) -> Json:
    if args.get("exec_id"):
        session = call.session(args)
        result = await call.host.call("exec_result", session=session.id, exec_id=args["exec_id"])
        return await _result(session, result, args.get("max_tokens"))
    seen = await call.status(args)
    session = AsyncSession(call.host, seen["id"], seen["name"])
    about = session_text.session(seen, call.agent.id)
    if args.get("screen"):
        shown = await call.host.call("screen", session=session.id)
        screen = {k: shown[k] for k in ("text", "cols", "rows", "cursor", "title", "alternate")}
        return _marked(about | {"screen": screen, "offset": shown["offset"]}, "screen", "prompt")
    return _marked(about | await _stretch(session, seen["output"], args), "text", "prompt")


async def _stretch(session: AsyncSession, output: Json, args: Json) -> Json:
    """The output's end, or what follows an offset; whole lines, where there are lines."""
    most, begin, first, end = (
        token_budget.budget(args.get("max_tokens")),
        args.get("from"),
        output["start"],
        output["end"],
    )
    if begin is None:
        begin = first
        at, data = max(first, end - most), b""
        if end > at:
            data, at = await _bytes(session, at, end)
        if at > first:
            at, data = _from_line(at, data)
        upto = end
    elif begin < 0:
        raise invalid("from is an offset, 0 or more", "leave it out for the end of the output")
    else:
        upto = max(begin, min(end, begin + most))
        data, at = await _bytes(session, begin, upto) if upto > begin else (b"", begin)
        data = token_budget.cut_end(data) if upto < end else data
        upto = at + len(data)
    text, omitted = token_budget.joined([(begin, b""), (at, data)], upto)
    return {"text": text, "next": upto, "more": upto < end} | ({"omitted": omitted} if omitted else {})


async def wait(call: ToolCall, args: Json) -> Json:
    seconds = call.patience(args.get("wait_s"))
    spec = str(args["for"])
    if spec.startswith("answer="):
        item = await call.waiting(call.host.asked_raw(spec[7:], seconds), seconds, "waiting for a person")
        return {"event": "timeout" if item["state"] == "open" else "answer", **session_text.item(item)}
    session = call.session(args)
    doing = session.wait_for(spec, args.get("from"), seconds)
    answer = await call.waiting(doing, seconds, f"{session.name}: waiting for {spec}")
    told = {"session": session.name, "event": answer["event"], "offset": answer["offset"], "detail": answer["detail"]}
    if answer["event"] == "timeout":
        start = args.get("from")
        # A text may have come in part: the search goes on where it began, not where the output ends now.
        told["offset"] = start if spec.startswith("text=") and start is not None else answer["offset"]
        seen = await call.status({"session": session.id})
        told |= session_text.session(seen, call.agent.id) | {"event": "timeout"}
        return _marked(told, "prompt", "detail")
    if answer["event"] == "done":
        result = await call.host.call("exec_result", session=session.id, exec_id=spec.partition("=")[2])
        return told | await _result(session, result, None)
    return _marked(told, "detail")


async def send(call: ToolCall, args: Json) -> Json:
    seen = await call.status(args)
    text, keys = args.get("text") or "", args.get("keys") or []
    if not (text or keys or args.get("enter")):
        raise invalid("nothing to type", "give text, keys or enter")
    answers = text or args.get("enter") or not _GIVE_UP.issuperset(keys)
    if seen["activity"]["kind"] == "waiting_for_secret" and answers:
        raise HoldfastError(
            "not_allowed",
            f"{seen['name']} waits for a secret, which is never yours to type",
            "a person answers it in the inbox; wait for=quiet, or send keys C-c to give up",
        )
    session = AsyncSession(call.host, seen["id"], seen["name"])
    done = await session.send_raw(
        text, enter=bool(args.get("enter")), keys=keys, why=args.get("why"), approval=call.patience(None)
    )
    if "ask" in done:
        return {"session": seen["name"], **session_text.waiting(done)}
    return {"session": seen["name"], "sent": True, "from": seen["output"]["end"]}


async def kill(call: ToolCall, args: Json) -> Json:
    session = call.session(args)
    if args.get("signal"):
        await session.kill(str(args["signal"]), why=args.get("why"))
    else:
        await session.stop(why=args.get("why"))
    return session_text.session(await call.status({"session": session.id}), call.agent.id)


async def ports(call: ToolCall, args: Json) -> Json:
    found = await call.host.call("ports", port=args.get("port"))
    rows = [{"port": p["port"], "address": p["address"], "session": p["session_name"], "pid": p["pid"]} for p in found]
    return {"ports": rows}


def _marked(told: Json, *names: str) -> Json:
    """Name the fields that hold a program's words: they are material, never instructions."""
    return told | {"untrusted": [name for name in names if name in told]}
