"""What a channel may ask of the keeper: one function per frame and per ACT operation, each checked before it acts."""

from __future__ import annotations

import base64
import os
import signal
import time

from ..model import limits
from ..model.controls import Actor, Refused
from ..wire import frames
from . import facts, program
from .channel import Channel
from .stopping import Stopping, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Json = dict[str, Any]
    T = TypeVar("T")
    from collections.abc import Callable

    from .keeper import Keeper

_QUERY_FRESH_S = 1.0  # a program that asked its terminal longer ago has given up, and would take the answer for typing
_LINE_ENDS = (b"\r", b"\n", b"\x03", b"\x04")  # a line that was sent, given up, or ended
_FOREGROUND_SIGNALS = {"SIGINT", "SIGQUIT", "SIGTSTP", "SIGWINCH"}  # what a terminal's keys send
_TREE_SIGNALS = {"SIGKILL", "SIGTERM", "SIGSTOP", "SIGCONT"}  # leaving half a tree behind helps nobody


def receive(keeper: Keeper, channel: Channel, kind: int, payload: bytes) -> None:
    """One frame from a client. Before HELLO nothing else is heard."""
    if kind == frames.HELLO:
        _hello(keeper, channel, frames.parse_json(payload))
    elif channel.actor is None:
        raise frames.ProtocolError("the first frame is HELLO")
    elif kind == frames.INPUT:
        _input_frame(keeper, channel, payload)
    elif kind == frames.READ:
        channel.at, channel.to = frames.parse_pair(payload)
        if channel.at == channel.to:
            channel.at = channel.to = -1
        keeper.send(channel, b"")
    elif kind == frames.RESIZE:
        try:
            _resize(keeper, channel, channel.actor, *frames.parse_size(payload), channel.key)
        except Refused:
            pass  # only the holder sizes the terminal; a watcher's window is its own affair
    elif kind == frames.WATCH:
        offset = frames.parse_u64(payload)
        if keeper.log.end > offset:
            keeper.send(channel, frames.u64_frame(frames.GREW, keeper.log.end))
        else:
            channel.watch = offset
    elif kind == frames.ACT:
        _act(keeper, channel, frames.parse_json(payload))


def _hello(keeper: Keeper, channel: Channel, hello: Json) -> None:
    if hello.get("token") != keeper.manifest["token"]:
        raise frames.ProtocolError("a channel is opened by the host")
    channel.host = hello.get("role") == "host"
    channel.actor = Actor(str(hello.get("operator")), str(hello.get("kind")), str(hello.get("name")))
    channel.rights = frozenset(hello.get("rights") or ())
    channel.client = str(hello.get("client") or channel.key)
    channel.via = str(hello.get("via") or "")
    channel.attach = bool(hello.get("attach"))
    channel.acks = bool(hello.get("acks", True))
    channel.since = time.time()
    welcome = {"v": frames.VERSION, "keeper": os.getpid(), **status(keeper)}
    keeper.send(channel, frames.message(frames.WELCOME, welcome))
    if channel.host and keeper.query and time.monotonic() - keeper.query_at < _QUERY_FRESH_S:
        keeper.send(channel, frames.message(frames.EVENT, keeper.query))
    if channel.attach:
        keeper.tell_host({"event": "channels", "attached": keeper.attached()})


def status(keeper: Keeper) -> Json:
    """What the keeper knows of its session, as it is now."""
    return {
        "session": keeper.session,
        "generation": keeper.manifest["generation"],
        "pid": keeper.program.pid,
        "exit": keeper.exit,
        "output": {"start": keeper.log.start, "end": keeper.log.end, "durable": keeper.log.durable},
        "dropped": keeper.log.dropped,
        "size": list(keeper.size),
        "tty": keeper.program.tty,
        "controls": keeper.controls.as_dict(),
        "attached": keeper.attached(),
        "queued_input": len(keeper.input),
        "typed": keeper.typed,
        "midline": keeper.midline,
        "input_at": keeper.input_at,
        "output_at": keeper.output_at,
        "stopping": keeper.stopping is not None,
        "cgroup": keeper.leaves,
    }


# -- controls ------------------------------------------------------------------------------------------------


def _hold(keeper: Keeper, actor: Actor, hold: str, *, force: bool = False, epoch: int = 0) -> int:
    """Have `actor` hold the controls for the reason `hold`; how much unread input a takeover flushed."""
    if epoch:
        keeper.controls.check(actor, epoch)
    if not keeper.controls.needs_grant(actor, force):
        keeper.controls.join(hold)
        return 0
    taken_over = keeper.controls.holder is not None
    keeper.reserve_epoch()
    flushed = keeper.flush_unread() if taken_over else 0
    keeper.controls.grant(actor, hold, time.time())
    keeper.tell({"event": "controls", "controls": keeper.controls.as_dict(), "flushed": flushed})
    return flushed


def _for_its_duration(keeper: Keeper, actor: Actor, action: Callable[[], T]) -> T:
    """Act with the controls: with those the actor holds, or with free ones just for this."""
    _hold(keeper, actor, "action")
    try:
        return action()
    finally:
        if keeper.controls.drop("action"):
            keeper.tell({"event": "controls", "controls": keeper.controls.as_dict()})


# -- input, size, signals ----------------------------------------------------------------------------------------


def _input_frame(keeper: Keeper, channel: Channel, payload: bytes) -> None:
    seq, epoch, data = frames.parse_input(payload)
    assert channel.actor is not None
    if keeper.seqs.get(channel.client, 0) >= seq > 0:  # a retry of what was applied
        keeper.send(channel, frames.pair_frame(frames.ACK, seq, keeper.controls.epoch))
        return
    try:
        _require(channel, "type")
        _hold(keeper, channel.actor, channel.key, epoch=epoch)
        _type(keeper, data)
    except Refused as e:
        keeper.send(channel, frames.message(frames.RESULT, {"seq": seq, "error": _error(e)}))
        return
    _remember(keeper, channel.client, seq)
    channel.paused = keeper.input.full
    if channel.acks:
        keeper.send(channel, frames.pair_frame(frames.ACK, seq, keeper.controls.epoch))


def _remember(keeper: Keeper, client: str, seq: int) -> None:
    keeper.seqs.pop(client, None)
    keeper.seqs[client] = seq
    if len(keeper.seqs) > limits.CLIENTS_REMEMBERED:
        keeper.seqs.pop(next(iter(keeper.seqs)))


def _type(keeper: Keeper, data: bytes) -> None:
    keeper.input.add(data)
    keeper.typed += 1
    keeper.midline = data[-1:] not in _LINE_ENDS
    keeper.input_at = time.time()
    keeper.flush_input()


def _resize(keeper: Keeper, channel: Channel, actor: Actor, cols: int, rows: int, hold: str) -> None:
    if not (1 <= cols <= limits.COLS_MAX and 1 <= rows <= limits.ROWS_MAX):
        raise Refused(
            "invalid",
            f"a terminal of {cols}x{rows}",
            f"1x1 to {limits.COLS_MAX}x{limits.ROWS_MAX} is possible",
        )
    if keeper.program.master < 0:
        return
    _require(channel, "resize")
    if channel.size != (cols, rows):
        channel.size = (cols, rows)
    if (cols, rows) == keeper.size:  # nothing to do, and nothing to tell: an event for it would be answered again
        return
    if hold in keeper.controls.holds:
        _apply_size(keeper, cols, rows)
    else:
        _for_its_duration(keeper, actor, lambda: _apply_size(keeper, cols, rows))


def _apply_size(keeper: Keeper, cols: int, rows: int) -> None:
    if (cols, rows) == keeper.size:
        return
    keeper.size = (cols, rows)
    keeper.log.resized(cols, rows, time.time_ns() // 1000)
    program.set_size(keeper.program.slave, cols, rows)
    keeper.tell({"event": "resize", "size": [cols, rows], "offset": keeper.log.end})


def _signal(keeper: Keeper, name: str, target: str) -> Json:
    number = int(getattr(signal, name))
    if not target:
        target = "tree" if name in _TREE_SIGNALS else "foreground" if name in _FOREGROUND_SIGNALS else "main"
    if target == "foreground" and keeper.program.master >= 0:
        group = os.tcgetpgrp(keeper.program.master) if keeper.program.master >= 0 else 0
        if group > 0:
            os.killpg(group, number)
            return {"signalled": group, "target": "foreground"}
    if target == "tree":
        hit = [pid for pid in keeper.own_tree() if send(pid, number)]
        return {"signalled": len(hit), "target": "tree"}
    if keeper.exit is not None:
        raise Refused("not_found", "the main program has ended", "signal the rest with --to tree")
    send(keeper.program.pid, number)
    return {"signalled": keeper.program.pid, "target": "main"}


# -- ACT operations ------------------------------------------------------------------------------------------------


def _require(channel: Channel, right: str) -> None:
    if not channel.host and right not in channel.rights:
        raise Refused(
            "not_allowed", f"this channel may not {right}", "attach without -r, or ask for the right"
        )


def _error(e: Refused) -> dict[str, str]:
    return {"code": e.code, "message": e.message, "hint": e.hint}


def _act(keeper: Keeper, channel: Channel, request: Json) -> None:
    reply: Json = {"id": request.get("id")}
    operation = _OPERATIONS.get(str(request.get("op")))
    try:
        if operation is None:
            raise Refused(
                "unsupported", f"this keeper does not know {request.get('op')!r}", "restart the session"
            )
        reply["ok"] = operation(keeper, channel, _actor(channel, request), request)
    except Refused as e:
        reply["error"] = _error(e)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        reply["error"] = {"code": "invalid", "message": f"a malformed request: {e!r}", "hint": ""}
    except OSError as e:
        reply["error"] = {"code": "failed", "message": os.strerror(e.errno or 0), "hint": ""}
    if channel.fd in keeper.channels:
        keeper.send(channel, frames.message(frames.RESULT, reply))


def _actor(channel: Channel, request: Json) -> Actor:
    """The host may speak for an operator that it identified; anyone else speaks for itself."""
    speaker = request.get("as")
    if channel.host and isinstance(speaker, dict):
        return Actor(str(speaker["operator"]), str(speaker["kind"]), str(speaker["name"]))
    assert channel.actor is not None
    return channel.actor


def _op_status(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    return status(keeper)


def _op_sample(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    answer = status(keeper)
    if request.get("quick"):  # only the foreground job: a walk of /proc costs more than the question
        group = os.tcgetpgrp(keeper.program.master) if keeper.program.master >= 0 else 0
        members = [group] if group > 0 else []
    else:  # the host may have walked for all its sessions at once
        members = request["members"] if isinstance(request.get("members"), list) else keeper.own_tree()
        answer["members"] = members
    if keeper.program.master >= 0:
        answer["facts"] = facts.sample(keeper.program.master, keeper.program.tty, members)
    return answer


def _op_input(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    _require(channel, "type")
    data = base64.b64decode(str(request["data"]))
    hold = request.get("hold")
    if isinstance(hold, str):  # an exec keeps the controls until its command ends
        _hold(keeper, actor, hold)
        _type(keeper, data)
    else:
        _for_its_duration(keeper, actor, lambda: _type(keeper, data))
    return {"epoch": keeper.controls.epoch, "end": keeper.log.end, "typed": keeper.typed}


def _op_input_at_prompt(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    """Type, if the shell is at the prompt where it was last seen and nobody typed since; `typed` is 0 where not."""
    prompt = request["prompt"]
    if keeper.typed != prompt["typed"] or facts.at_prompt(keeper.program.master, keeper.program.tty) != prompt["seen"]:
        return {"typed": 0}
    return _op_input(keeper, channel, actor, request)


def _op_drop(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    if keeper.controls.drop(str(request["hold"])):
        keeper.tell({"event": "controls", "controls": keeper.controls.as_dict()})
    return {}


def _op_reply(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    """The emulator's answer to a query: the terminal speaks, not an operator, so no epoch is involved."""
    if not channel.host:
        raise Refused("not_allowed", "only the host's emulator answers queries", "")
    keeper.input.add(base64.b64decode(str(request["data"])))
    keeper.flush_input()
    return {}


def _op_resize(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    cols, rows = request["size"]
    _resize(keeper, channel, actor, int(cols), int(rows), "action")
    return {"size": list(keeper.size)}


def _op_end_input(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    _require(channel, "type")
    _for_its_duration(keeper, actor, keeper.input.end)
    return {}


def _op_signal(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    _require(channel, "signal")
    name, target = str(request["signal"]), str(request.get("target") or "")
    keeper.blame = actor.operator
    return _for_its_duration(keeper, actor, lambda: _signal(keeper, name, target))


def _op_stop(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    _require(channel, "stop")
    keeper.blame = actor.operator
    now = time.monotonic()
    grace = float(request.get("grace_s", limits.STOP_GRACE_S))
    keeper.stopping = Stopping(keeper.program.pid if keeper.exit is None else 0, grace, now)
    keeper.stopping.begin(keeper.own_tree(), now)
    return {"stopping": True}


def _op_take(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    _require(channel, "type")
    hold = channel.key if channel.attach else "taken"
    flushed = _hold(keeper, actor, hold, force=bool(request.get("force")))
    if channel.size and channel.attach:
        _apply_size(keeper, *channel.size)
    return {"controls": keeper.controls.as_dict(), "flushed": flushed}


def _op_release(
    keeper: Keeper, channel: Channel, actor: Actor, request: Json
) -> Json:
    keeper.controls.check(actor)
    keeper.controls.free()
    keeper.tell({"event": "controls", "controls": keeper.controls.as_dict()})
    return {"controls": keeper.controls.as_dict()}


_OPERATIONS = {
    "status": _op_status,
    "sample": _op_sample,
    "input": _op_input,
    "input_at_prompt": _op_input_at_prompt,
    "drop": _op_drop,
    "reply": _op_reply,
    "resize": _op_resize,
    "end_input": _op_end_input,
    "signal": _op_signal,
    "stop": _op_stop,
    "take": _op_take,
    "release": _op_release,
}
