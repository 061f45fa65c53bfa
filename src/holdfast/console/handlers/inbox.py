"""The inbox over HTTP: what waits for a person, and their answers."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ...client.types import Ask
from ...model.errors import invalid
from ...model.limits import ASK_ANSWER_MAX, WHY_MAX
from ..http.routes import HttpCall, Nothing, Route
from .sessions import All

_Text = Annotated[str, msgspec.Meta(max_length=ASK_ANSWER_MAX)] | None


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the three. A text or a secret is typed where a program waits; neither is kept, and a secret not echoed."""

    text: _Text = None
    approve: bool | None = None
    secret: _Text = None
    why: Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None = None


async def ls(call: HttpCall[All, Nothing]) -> Any:
    return (await call.host.call("inbox", all=call.query.all))["items"]


async def answer(call: HttpCall[Nothing, Answer]) -> Any:
    body = call.body
    if sum(given is not None for given in (body.text, body.approve, body.secret)) != 1:
        raise invalid("no answer, or more than one", "text, approve or secret")
    text = body.text if body.secret is None else body.secret
    return await call.host.answer_raw(call.word("ask"), text, approve=body.approve, why=body.why)


ROUTES = [
    Route(
        "GET",
        "/api/inbox",
        "What waits for a person, looked at now; with all=1 also what is over.",
        list[Ask],
        ls,
        query=All,
    ),
    Route("POST", "/api/inbox/{ask}/answer", "Answer an item.", Ask, answer, body=Answer),
]
