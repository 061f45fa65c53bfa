"""The tool `ask`: through the client's own dialog where it has one, and as an inbox item where it has none.

    handshake era ── elicitation/create, while the call waits ─┐ unanswered in time, or not possible
    stateless era ── the call is answered `input_required`,    ├──────────────> an item of the inbox
                     and comes again with the person's words ──┘
"""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from . import views
from .call import Call

Json = dict[str, Any]

_KEY = "answer"
_DIALOG_S = 50.0  # a person reads and types; clients that show a dialog give up after 60 s or later


async def ask(call: Call, args: Json) -> Json | types.InputRequiredResult:
    if _has_dialog(call):
        if call.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            given = (call.responses or {}).get(_KEY)
            if given is None:
                return types.InputRequiredResult(input_requests={_KEY: types.ElicitRequest(params=_form(args))})
            if isinstance(given, types.ElicitResult):
                return _told(given)
        elif call.ctx.session.can_send_request:
            answer = await _dialog(call, args)
            if answer is not None:
                return _told(answer)
    return await _inbox(call, args)


def _has_dialog(call: Call) -> bool:
    able = call.ctx.session.client_capabilities
    elicitation = able.elicitation if able is not None else None
    # Without modes it is the form: that is how the first version of the protocol said it.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _form(args: Json) -> types.ElicitRequestFormParams:
    field: Json = {"type": "string"} | ({"enum": list(args["options"])} if args.get("options") else {})
    schema = {"type": "object", "properties": {_KEY: field}, "required": [_KEY]}
    return types.ElicitRequestFormParams(message=str(args["text"]), requested_schema=schema)


async def _dialog(call: Call, args: Json) -> types.ElicitResult | None:
    request = types.ElicitRequest(params=_form(args))
    related = _related(call)
    try:
        return await call.ctx.session.send_request(
            request, types.ElicitResult, request_read_timeout_seconds=_DIALOG_S, metadata=related
        )
    except (MCPError, ValueError):
        return None  # it timed out, or the client cannot after all: the question is not lost


def _related(call: Call) -> Any:
    from mcp.shared.message import ServerMessageMetadata

    return ServerMessageMetadata(related_request_id=call.ctx.request_id)


def _told(answer: types.ElicitResult) -> Json:
    if answer.action == "accept":
        return {"state": "answered", "answer": (answer.content or {}).get(_KEY), "via": "client"}
    return {"state": "denied", "answer": None, "via": "client"}


async def _inbox(call: Call, args: Json) -> Json:
    seconds = call.patience(args.get("wait_s"))
    item = await call.host.ask_raw(
        args["text"], session=args.get("session"), options=args.get("options") or (), why=args.get("why")
    )
    if seconds > 0:
        item = await call.waiting(call.host.asked_raw(item["id"], seconds), seconds, "waiting for a person")
    told = views.item(item) | {"via": "inbox"}
    return told | ({"next": f"wait for=answer={item['id']}"} if item["state"] == "open" else {})
