"""Operations on the HTTP port: where it is, the tokens of those who come through it, and the browsers let in."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

from ...api.web import LoginAdd, LoginCheck, LoginEnd, LoginUse, TokenAdd, TokenCheck, TokenEnd, Web
from ...model import web_address
from ...model.limits import TOKEN_TTL_S
from ...model.names import refused
from ..journal.journal import Journal
from ..operators.browser_logins import Logins
from ..operators.caller import Caller
from ..operators.operators import Commit, Operator, Operators
from ..operators.tokens import Tokens
from .web_process import Web as WebProcess

Json = dict[str, Any]


class WebParts(NamedTuple):
    """What the handlers here use of the host."""

    web: WebProcess
    operators: Operators
    tokens: Tokens
    logins: Logins
    journal: Journal

    def noting(self, kind: str, caller: Caller, why: str | None, whom: Operator | None, **facts: Any) -> Commit:
        """A change is in the ledger and in the journal, or in neither."""
        about = facts if whom is None else {"whom": whom.actor, **facts}
        return lambda work: self.journal.commit(work, kind, actor=caller.actor, why=why, **about)


@Web.answered
async def web(parts: WebParts, caller: Caller, request: Web) -> Json:
    if request.listen is None:
        await asyncio.shield(parts.web.forget())
    else:
        public = None if request.url is None else web_address.public(request.url)
        await asyncio.shield(parts.web.use(*web_address.parse(request.listen), public))
    parts.journal.note("web", session=None, actor=caller.actor, why=request.why, web=parts.web.about())
    await parts.journal.written()
    return {"web": parts.web.about()}


@TokenAdd.answered
async def token_add(parts: WebParts, caller: Caller, request: TokenAdd) -> Json:
    who = parts.operators.find(request.operator)
    until = time.time() + (request.ttl_s or TOKEN_TTL_S)
    commit = parts.noting("token", caller, request.why, who, until=until)
    await asyncio.shield(parts.tokens.add(request.hash, who, caller.operator, until, commit))
    return {"operator": who.id, "name": who.name, "until": until}


@TokenEnd.answered
async def token_end(parts: WebParts, caller: Caller, request: TokenEnd) -> Json:
    who = parts.operators.find(request.operator)
    ended = await asyncio.shield(parts.tokens.end(who, parts.noting("token_end", caller, request.why, who)))
    return {"operator": who.id, "name": who.name, "ended": ended}


@TokenCheck.answered
async def token_check(parts: WebParts, caller: Caller, request: TokenCheck) -> Json:
    who = parts.tokens.find(request.hash, time.time())
    if request.ended:
        await parts.tokens.ended(request.hash)
    return who.actor


# -- browsers: a person lets in browsers of their own; the owner also those of the other people enrolled here


@LoginAdd.answered
async def login_add(parts: WebParts, caller: Caller, request: LoginAdd) -> Json:
    who = _whose(parts.operators, request.operator, caller)
    commit = parts.noting("link", caller, request.why, who)
    until = await asyncio.shield(parts.logins.add(request.hash, who, commit))
    return {"operator": who.id, "name": who.name, "until": until}


def _whose(operators: Operators, asked: str | None, caller: Caller) -> Operator:
    """A browser has all rights of its person: no caller lets one in that has fewer, or that was not alone."""
    who = operators.by_id[caller.operator] if asked is None else operators.find(asked)
    if caller.kind != "human":
        raise refused("a browser is a person's", "an agent comes with a token: hold mcp token AGENT")
    if caller.bound_by:
        why = "others had hands on this session, and may less than a browser would"
        raise refused(why, "use a terminal of your own")
    owner = caller.operator == operators.first and caller.may("enrol", None)
    if not owner and (who.id != caller.operator or who.id == operators.first):
        raise refused(f"{caller.name} lets in browsers of their own", "ask the owner of this home")
    return who


@LoginUse.answered
async def login_use(parts: WebParts, caller: Caller, request: LoginUse) -> Json:
    _owner(parts, caller)
    commit = parts.noting("login", caller, request.why, parts.logins.whose(request.hash))
    return {"until": await asyncio.shield(parts.logins.use(request.hash, request.login, commit))}


@LoginCheck.answered
async def login_check(parts: WebParts, caller: Caller, request: LoginCheck) -> Json:
    _owner(parts, caller)
    who, until = parts.logins.check(request.hash, time.time())
    if request.ended:
        await parts.logins.ended(request.hash)
    return {**who.actor, "owner": who.id == parts.operators.first, "until": until}


@LoginEnd.answered
async def login_end(parts: WebParts, caller: Caller, request: LoginEnd) -> Json:
    _owner(parts, caller)
    commit = parts.noting("logout", caller, request.why, None)
    return {"ended": await asyncio.shield(parts.logins.end(request.hash, commit))}


def _owner(parts: WebParts, caller: Caller) -> None:
    if caller.operator != parts.operators.first:
        raise refused("that is the web process's to ask", "an agent comes with a token: hold mcp token AGENT")
