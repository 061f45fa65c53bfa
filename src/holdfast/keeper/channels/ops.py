"""The ACT operations: one function each, behind a table that says which right it needs and who may ask."""

from __future__ import annotations

import base64
import os
import signal
import time

from ...model import limits
from ...model.sessions.controls import Actor, Refused
from ...model.sessions.hold_end import SENDING, WORK, Hold
from ...wire import keeper_frames
from ..controls import controls, prompt_answer, type_and_resize
from ..end.stop_tree import Stopping, send
from ..observe import terminal_facts
from . import request_fields
from .channel import Channel
from .handshake import status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

    from ..keeper import Keeper

    Operation = Callable[[Keeper, Channel, Actor, Json], Json]

_FOREGROUND_SIGNALS = {"SIGINT", "SIGQUIT", "SIGTSTP", "SIGWINCH"}  # what a terminal's keys send
_TREE_SIGNALS = {"SIGKILL", "SIGTERM", "SIGSTOP", "SIGCONT"}  # leaving half a tree behind helps nobody
_FOREVER_S = 1e12  # a moment further away than any
_GRACE_S_MAX = 86400.0  # a day to end in: longer is a mistake
_WHATS = ("send", "exec", "answer")


def act(keeper: Keeper, channel: Channel, request: Json) -> None:
    """Do what is asked and answer it; whatever is wrong with the request is an answer, not an accident."""
    number = request.get("id")
    reply: Json = {"id": number if isinstance(number, int | str) else None}
    try:
        name = request_fields.word(request, "op")
        known = _OPERATIONS.get(name)
        if known is None:
            raise Refused("unsupported", f"this keeper does not know {name!r}", "restart the session")
        operation, right, barring = known
        if right == "host" and not channel.host:
            raise Refused("not_allowed", f"only the host may ask for {name}", "")
        if right and right != "host":
            type_and_resize.require(channel, right)
        if barring and not request.get("epoch"):
            controls.heard(keeper, channel)
        reply["ok"] = _once(keeper, channel, operation, request)
    except Refused as e:
        reply["error"] = type_and_resize.error(keeper, e)
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError, AttributeError) as e:
        reply["error"] = {"code": "invalid", "message": f"a malformed request: {e!r}"[:500], "hint": ""}
    except OSError as e:
        reply["error"] = {"code": "failed", "message": os.strerror(e.errno or 0), "hint": ""}
    if channel.fd in keeper.channels:
        keeper.send(channel, keeper_frames.message(keeper_frames.RESULT, reply))


def _once(keeper: Keeper, channel: Channel, operation: Operation, request: Json) -> Json:
    """Carry it out, unless this very request was (`repeated`), or whoever asked has stopped waiting for it."""
    actor, name = _actor(channel, request), request_fields.word(request, "request")
    if name and (before := keeper.applied.find(actor.operator, name)) is not None:
        return {**before, "repeated": True}
    if 0 < request_fields.seconds(request, "by", 0.0, _FOREVER_S) < time.monotonic():
        raise Refused("timeout", "it came too late, and was not carried out", "try again")
    done = operation(keeper, channel, actor, request)
    if name:
        keeper.applied.keep(actor.operator, name, done)
    return done


def _actor(channel: Channel, request: Json) -> Actor:
    """The host may speak for an operator that it identified; anyone else speaks for itself."""
    assert channel.actor is not None
    return request_fields.actor(request["as"]) if channel.host and request.get("as") is not None else channel.actor


def _process(channel: Channel, request: Json) -> tuple[int, int] | None:
    """Whose end ends what is held by this: the host says it of the operator that it speaks for."""
    return request_fields.process(request["as"]) if channel.host and request.get("as") is not None else channel.process


# -- looking ----------------------------------------------------------------------------------------------------


def _status(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    return status(keeper)


def _sample(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    members, seen = [], None
    quick = bool(request.get("quick")) or not channel.host  # who watches does not make the keeper walk /proc
    if quick:  # only the foreground job: a walk costs more than the question
        group = os.tcgetpgrp(keeper.program.master) if keeper.program.master >= 0 else 0
        members = [group] if group > 0 else []
    else:  # the host may have walked for all its sessions at once
        known = request.get("members")
        usable = isinstance(known, list) and all(type(pid) is int for pid in known)
        members = known if usable and known is not None else keeper.own_tree()
    if keeper.program.master >= 0:
        seen = terminal_facts.sample(keeper.program.master, keeper.program.tty, members)
    keeper.catch_up()  # a program that waits has printed its prompt: the offset is the one after it
    answer = status(keeper)
    if not quick:
        answer["members"] = members
    if seen is not None:
        answer["facts"], answer["says"] = seen, keeper.says.told(time.monotonic())
    return answer


# -- acting -----------------------------------------------------------------------------------------------------


def _input(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    data = base64.b64decode(request["data"], validate=True)
    hold = request_fields.word(request, "hold") if channel.host else ""
    what, exec_id = (
        request_fields.word(request, "what", "exec" if hold else "send"),
        request_fields.word(request, "exec_id"),
    )
    if what not in _WHATS:
        raise request_fields.invalid(f"what is one of {', '.join(_WHATS)}")
    if len(data) > limits.INPUT_BYTES_MAX:
        raise Refused("invalid", f"an input of more than {limits.INPUT_BYTES_MAX} bytes", "send it in pieces")
    epoch, why = request_fields.whole(request, "epoch"), request_fields.text(request, "why")
    via = request_fields.word(request, "via") or channel.via
    try:
        keeper.input.room(len(data))
    except Refused:
        channel.paused = channel.host  # it hears when there is room
        raise

    if hold and hold in keeper.lost_holds:
        raise Refused("conflict", f"{hold} lost the controls; {keeper.controls.who()}", "take them: hold take SESSION")

    lasting = _lasting(keeper, channel, actor, hold, request) if hold else None

    def put() -> bool:
        off = type_and_resize.put(keeper, actor, data, via, what, exec_id or hold, why)
        if lasting is not None:  # an exec keeps the controls until its command ends
            fresh = len(keeper.controls.holds) == 1
            keeper.controls.join(hold, lasting, time.monotonic())
            if fresh:
                controls.tell(keeper)
        return off

    off = controls.for_its_duration(keeper, actor, put, epoch)
    return {"epoch": keeper.controls.epoch, "end": keeper.log.end, "typed": keeper.typed, "echo_off": off}


def _lasting(keeper: Keeper, channel: Channel, actor: Actor, name: str, request: Json) -> Hold | None:
    """What an exec or a text in several pieces keeps the controls by; nothing where its process has ended."""
    try:
        process = controls.watched(keeper, actor, _process(channel, request))
    except Refused:
        return None
    return Hold(SENDING if name.startswith("snd_") else WORK, channel.key, process)


def _input_at_prompt(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """Type, if the shell is at the prompt where it was last seen and nobody typed since; `typed` is 0 where not."""
    prompt = request["prompt"]
    if (
        keeper.typed != prompt["typed"]
        or terminal_facts.at_prompt(keeper.program.master, keeper.program.tty) != prompt["seen"]
    ):
        return {"typed": 0}
    return _input(keeper, channel, actor, request)


def _answer(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """Types an answer into the very prompt it was given for, or not at all. `force` preempts an agent that waits."""
    prompt_answer.check(keeper, request["expect"])
    holder, why = keeper.controls.holder, request_fields.text(request, "why")
    force = request.get("force") is True and holder is not None and holder.kind != "human"
    controls.have(keeper, actor, prompt_answer.HOLD, Hold(WORK), force=force, why=why)
    try:
        return _input(keeper, channel, actor, {**request, "hold": None, "what": "answer"})
    finally:
        if keeper.controls.drop(prompt_answer.HOLD):
            controls.tell(keeper)


def _drop(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """The host ends a hold that it named."""
    freed = keeper.controls.drop(request_fields.word(request, "hold"))
    keeper.processes.only(keeper.controls.processes())
    if freed:
        controls.tell(keeper)
    return {}


def _reply(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """The emulator's answer to a query: the terminal speaks, not an operator, so no epoch is involved."""
    data = base64.b64decode(request["data"], validate=True)
    keeper.query = None  # it is answered: the next host, however soon, does not answer it again
    keeper.input.room(len(data))
    keeper.input.check(data)
    keeper.input.add(data, "")
    keeper.flush_input()
    return {}


def _resize(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    cols, rows = request["size"]
    epoch, why = request_fields.whole(request, "epoch"), request_fields.text(request, "why")
    type_and_resize.resize(keeper, channel, actor, int(cols), int(rows), "", epoch=epoch, why=why)
    return {"size": list(keeper.size)}


def _end_input(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    why = request_fields.text(request, "why")

    def end() -> None:
        controls.note(keeper, "end_input", actor, why, refusable=True)
        keeper.input.end(actor.operator)
        keeper.flush_input()

    controls.for_its_duration(keeper, actor, end, request_fields.whole(request, "epoch"))
    return {}


def _signal(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    name, target, why = (
        request_fields.word(request, "signal"),
        request_fields.word(request, "target"),
        request_fields.text(request, "why"),
    )
    if name not in signal.Signals.__members__:
        raise request_fields.invalid(f"no signal {name!r}")
    if target not in ("", "tree", "foreground", "main"):
        raise request_fields.invalid("target is tree, foreground or main")
    target = target or ("tree" if name in _TREE_SIGNALS else "foreground" if name in _FOREGROUND_SIGNALS else "main")

    def signalled() -> Json:
        controls.note(keeper, "signal", actor, why, {"signal": name, "target": target}, refusable=True)
        keeper.blame = actor.operator
        return _signalled(keeper, signal.Signals[name], target)

    return controls.for_its_duration(keeper, actor, signalled, request_fields.whole(request, "epoch"))


def _signalled(keeper: Keeper, number: int, target: str) -> Json:
    if target == "foreground" and keeper.program.master >= 0:
        group = os.tcgetpgrp(keeper.program.master)
        if group > 0:
            os.killpg(group, number)
            return {"signalled": group, "target": "foreground"}
    if target == "tree":
        hit = [pid for pid in keeper.main.only(keeper.own_tree()) if send(pid, number)]
        return {"signalled": len(hit), "target": "tree"}
    if keeper.exit is not None:
        raise Refused("not_found", "the main program has ended", "signal the rest with --to tree")
    send(keeper.main.pid, number)
    return {"signalled": keeper.main.pid, "target": "main"}


def _stop(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """A person may always end what runs. Nobody else may end it under the hands of whoever holds the controls."""
    epoch = request_fields.whole(request, "epoch")
    grace_s = request_fields.seconds(request, "grace_s", limits.STOP_GRACE_S, _GRACE_S_MAX)
    if epoch:
        keeper.controls.check(actor, epoch)
    elif actor.kind != "human" and keeper.controls.holder is not None:
        keeper.controls.check(actor)
    controls.note(keeper, "stop", actor, request_fields.text(request, "why"))
    keeper.blame = actor.operator
    now = time.monotonic()
    keeper.stopping = Stopping(keeper.main.pid if keeper.exit is None else 0, grace_s, now)
    keeper.stopping.begin(keeper.main.only(keeper.own_tree()), now)
    return {"stopping": True}


# -- the controls -----------------------------------------------------------------------------------------------


def _take(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """`force` takes them from an agent or a service, for a human; `insist` from another human as well. A takeover is
    `deliberate` unless it says that it is not: then the hold is one that typing would have made."""
    may, why = type_and_resize.may(channel, "request_control"), request_fields.text(request, "why")
    force, insist = request.get("force") is True and may, request.get("insist") is True
    process = controls.watched(keeper, actor, _process(channel, request))
    if channel.host:
        keeper.controls.times.takeover_s = request_fields.seconds(
            request, "takeover_max_s", keeper.controls.times.takeover_s, _FOREVER_S
        )
    before = keeper.controls.holder
    how = {"force": force, "insist": insist, "deliberate": request.get("deliberate") is not False}
    flushed = controls.take(keeper, channel, actor, process, why, **how)
    channel.barred = 0  # it asks knowing how things stand
    if channel.size and channel.attach:
        try:
            type_and_resize.apply_size(keeper, actor, *channel.size)
        except Refused:
            pass  # no room to record it: the controls are taken all the same
    taken = before is not None and before.operator != actor.operator
    return {
        "controls": keeper.controls.as_dict(),
        "flushed": flushed,
        "from": before.as_dict() if taken and before is not None else None,
    }


def _release(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    if request.get("detach"):
        controls.leave(keeper, channel, request.get("keep") is True)
    else:
        controls.release(keeper, actor, request_fields.text(request, "why"))
    return {"controls": keeper.controls.as_dict()}


def _hand(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    to, epoch = request_fields.actor(request.get("to")), request_fields.whole(request, "epoch")
    keeper.controls.check(actor, epoch)
    to = _receiver(keeper, channel, to)
    flushed = controls.hand(
        keeper, actor, to, request_fields.text(request, "note"), request_fields.text(request, "why"), epoch
    )
    return {"controls": keeper.controls.as_dict(), "flushed": flushed}


def _receiver(keeper: Keeper, channel: Channel, to: Actor) -> Actor:
    """Who somebody is, and that it may type, is the host's word, never a client's: on a channel one hands to another
    channel's operator, as the host introduced it."""
    if channel.host:
        return to
    for other in keeper.channels.values():
        if not other.host and "type" in other.rights and other.actor and other.actor.operator == to.operator:
            return other.actor
    raise Refused("not_allowed", f"{to.name or to.operator} is not here to take them", "hold hand SESSION OPERATOR")


def _seen(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """The client knows that it lost the controls: what it sends from now on it sends knowing that."""
    if request_fields.whole(request, "epoch") >= channel.barred:
        channel.barred = 0
    return {"barred": bool(channel.barred)}


def _revoke(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    operator, grant = request_fields.word(request, "operator"), request_fields.word(request, "grant")
    if not operator and not grant:
        raise request_fields.invalid("an operator or a grant to revoke")
    return controls.revoke(keeper, operator, grant)


def _applied(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    """What was answered to a request that was carried out; null where it was not."""
    return {"applied": keeper.applied.find(actor.operator, request_fields.word(request, "of"))}


# -- the record -------------------------------------------------------------------------------------------------


def _events(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    if request.get("now"):
        keeper.record.close()
    found = keeper.record.after(request_fields.whole(request, "after"), request_fields.whole(request, "max", 1000))
    return {"events": found, "last": keeper.record.ready, "lost": keeper.record.lost}


def _ack(keeper: Keeper, channel: Channel, actor: Actor, request: Json) -> Json:
    keeper.record.spool.acknowledge(min(request_fields.whole(request, "upto"), keeper.record.ready))
    return keeper.record.as_dict()


# name -> (function, the right it needs or "host", whether a barred channel must name its epoch)
_OPERATIONS = {
    "status": (_status, "view", False),
    "sample": (_sample, "view", False),
    "input": (_input, "type", True),
    "input_at_prompt": (_input_at_prompt, "type", True),
    "answer": (_answer, "host", False),
    "drop": (_drop, "host", False),
    "reply": (_reply, "host", False),
    "resize": (_resize, "resize", True),
    "end_input": (_end_input, "type", True),
    "signal": (_signal, "signal", True),
    "stop": (_stop, "stop", True),
    "take": (_take, "type", False),
    "release": (_release, "", False),
    "hand": (_hand, "type", True),
    "seen": (_seen, "", False),
    "revoke": (_revoke, "host", False),
    "applied": (_applied, "host", False),
    "events": (_events, "host", False),
    "ack": (_ack, "host", False),
}
