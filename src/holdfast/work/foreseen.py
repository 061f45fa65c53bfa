"""What a worker asks for in the middle of its work, as the one write that it nearly always is. Pure.

It has its lease, and its step was never begun, or is open: that is checked where it is written (store/*_quick.py), and
the arguments are here. Whatever is out of the ordinary is left to the call itself, which does it or says why not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..model import ids
from ..model.work.effects import check_word
from ..store.base import Quick
from ..wire import json_values
from .runs import rows as runs
from .steps import intent as stepping

Json = dict[str, Any]


def foreseen(name: str, args: Json, us: str) -> Quick | None:
    """The write that a call will be; None: that is to be found out. `us` asks where the arguments name nobody.

    Arguments without a request id are given one: where an answer is lost, the call itself asks with the same.
    """
    make = _CALLS.get(name)
    if make is None or type(args.get("epoch")) is not int:
        return None
    if not args.get("request"):
        args["request"] = ids.new("req_")
    try:
        return make(us, **args)
    except Exception:  # noqa: BLE001 - what is wrong with them is for the call itself to say
        return None


def _begin(
    us: str,
    /,
    *,
    run: str,
    key: str,
    epoch: int,
    effect: str = "unsafe",
    args: Any = None,
    action: str | None = None,
    idem_key: str | None = None,
    why: str | None = None,
    session: str | None = None,
    exec_id: str | None = None,
    by: str | None = None,
    request: str,
) -> Quick | None:
    if effect == "none" or not runs.whole(run):
        return None
    intent = stepping.intended(run, key, effect, args, action, idem_key, why, session, exec_id, by or us, request)
    stable = intent.stable_key
    return Quick("step_begun", (*_intended(intent, epoch, stable), None, None), stepping.to_execute(stable, epoch))


def _end(
    us: str,
    /,
    *,
    run: str,
    key: str,
    epoch: int,
    result: Any = None,
    effect: str | None = None,
    args: Any = None,
    action: str | None = None,
    why: str | None = None,
    by: str | None = None,
    request: str,
) -> Quick | None:
    if not runs.whole(run):
        return None
    text, answer = json_values.encode(result, "the result"), {"key": key, "state": "done"}
    if effect == "none":  # never begun on paper
        intent = stepping.intended(run, key, effect, args, action, None, why, None, None, by or us, request)
        body = stepping.outcome_body(intent.action or key, intent.why)
        return Quick("step_done", (*_intended(intent, epoch, intent.stable_key, body), text, request), answer)
    if effect is not None or args is not None or action is not None:
        return None  # what it was is known since it was begun: whoever says it again is to be listened to
    body = _DONE if why is None else stepping.outcome_body(None, json_values.said(why, "the reason"))
    head = run, check_word("a step's key", key), epoch, by or us, body
    return Quick("step_ended", (*head, text, check_word("a request", request)), answer)


def _next(
    us: str,
    /,
    *,
    run: str,
    ended: Json,
    key: str,
    epoch: int,
    effect: str = "unsafe",
    args: Any = None,
    action: str | None = None,
    why: str | None = None,
    by: str | None = None,
    request: str,
) -> Quick | None:
    if effect == "none" or not ended["request"] or not runs.whole(run):
        return None
    coming = stepping.intended(run, key, effect, args, action, None, why, None, None, by or us, request)
    stable = coming.stable_key
    text = json_values.encode(ended.get("result"), "the result")
    before = check_word("a step's key", ended["key"]), text, check_word("a request", ended["request"]), _DONE
    return Quick(
        "step_following", (*_intended(coming, epoch, stable), None, None, *before), stepping.to_execute(stable, epoch)
    )


_CALLS: dict[str, Callable[..., Quick | None]] = {"step_begin": _begin, "step_end": _end, "step_next": _next}
_DONE = stepping.outcome_body(None, None)


def _intended(intent: stepping.Intent, epoch: int, stable_key: str, body: str | None = None) -> tuple[Any, ...]:
    return (
        intent.run,
        intent.key,
        epoch,
        intent.by,
        body or stepping.action_body(intent),
        intent.effect,
        intent.action,
        intent.args_hash,
        json_values.shown(intent.args),
        stable_key,
        intent.request,
        intent.session,
        intent.exec_id,
    )
