"""The tool `ask`: through the client's own dialog, and as an inbox item where no person answered there.

    handshake era ── elicitation/create, while the call waits ─┐ unanswered in time, cancelled, declined at once,
    stateless era ── the call is answered `input_required`,    ├ or not possible ──────────> an item of the inbox
                     and comes again with the person's words ──┘

A client with no person at its screen (`claude -p`, `codex exec`) cancels or declines by itself: that is no answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from . import session_text
from .call import ToolCall

Json = dict[str, Any]

_KEY = "answer"
_DIALOG_S = 50.0  # a person reads and types; clients that show a dialog give up after 60 s or later
_READ_S = 1.0  # a "no" that comes sooner is the program's: no person has read a question and decided by then


async def ask(call: ToolCall, args: Json) -> Json | types.InputRequiredResult:
    began = time.monotonic()
    if _has_dialog(call):
        if call.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            given = (call.responses or {}).get(_KEY)
            if given is None:
                shown: types.InputRequests = {_KEY: types.ElicitRequest(params=_form(args))}
                return types.InputRequiredResult(input_requests=shown, request_state=repr(time.time()))
            after = _shown_for(call.state, time.time())
        else:
            given = await _dialog(call, args) if call.ctx.session.can_send_request else None
            after = time.monotonic() - began
        told = _told(given, after, args.get("options") or ()) if isinstance(given, types.ElicitResult) else None
        if told is not None:
            return told
    return await _inbox(call, args, call.limit - (time.monotonic() - began))


def _shown_for(state: str | None, now: float) -> float:
    """Seconds since the dialog was sent, by the client's echo of that moment; without a readable one, none."""
    try:
        return now - float(state or now)
    except ValueError:
        return 0.0


def _has_dialog(call: ToolCall) -> bool:
    able = call.ctx.session.client_capabilities
    elicitation = able.elicitation if able is not None else None
    # Without modes it is the form: that is how the first version of the protocol said it.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _form(args: Json) -> types.ElicitRequestFormParams:
    field: Json = {"type": "string"} | ({"enum": list(args["options"])} if args.get("options") else {})
    schema = {"type": "object", "properties": {_KEY: field}, "required": [_KEY]}
    return types.ElicitRequestFormParams(message=str(args["text"]), requested_schema=schema)


async def _dialog(call: ToolCall, args: Json) -> types.ElicitResult | None:
    request = types.ElicitRequest(params=_form(args))
    related = _related(call)
    try:
        given: types.ElicitResult = await call.ctx.session.send_request(
            request, types.ElicitResult, request_read_timeout_seconds=min(_DIALOG_S, call.limit), metadata=related
        )
        return given
    except (MCPError, ValueError):
        return None  # it timed out, or the client cannot after all: the question is not lost


def _related(call: ToolCall) -> Any:
    from mcp.shared.message import ServerMessageMetadata

    return ServerMessageMetadata(related_request_id=call.ctx.request_id)


def _told(given: types.ElicitResult, after_s: float, options: Sequence[str]) -> Json | None:
    """What a person said in the dialog, or None where no person can be shown to have said anything."""
    if given.action == "accept":
        answer = (given.content or {}).get(_KEY)
        fits = isinstance(answer, str) and bool(answer) and (not options or answer in options)
        return {"state": "answered", "answer": answer, "via": "client"} if fits else None
    if given.action == "decline" and after_s >= _READ_S:
        return {"state": "denied", "answer": None, "via": "client"}
    return None


async def _inbox(call: ToolCall, args: Json, left: float) -> Json:
    """As an item; waited for as long as a dialog that nobody answered has left of the call's time."""
    seconds = max(0.0, min(call.patience(args.get("wait_s")), left))
    item = await call.host.ask_raw(
        args["text"], session=args.get("session"), options=args.get("options") or (), why=args.get("why")
    )
    if seconds > 0:
        item = await call.waiting(call.host.asked_raw(item["id"], seconds), seconds, "waiting for a person")
    told = session_text.item(item) | {"via": "inbox"}
    return told | ({"next": f"wait for=answer={item['id']}"} if item["state"] == "open" else {})
