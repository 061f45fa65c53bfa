"""Operations on operators and grants: who there is, who may do what, and the end of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ...api.operators import OperatorAdd, OperatorFind, OperatorGrant, OperatorLs, OperatorRevoke, Whoami
from ...model import limits
from ...model.errors import HoldfastError, invalid, not_found
from ...model.names import refused
from ...model.operators import grants
from ...model.operators.grants import Grant
from ..change_feed.feed import LIST, News
from ..journal.journal import Journal
from ..revocable_requests import Pending
from .browser_logins import Logins
from .caller import Caller
from .operators import Commit, Operator, Operators
from .tokens import Tokens

Json = dict[str, Any]


class OperatorParts(NamedTuple):
    """What the handlers here use of the host. `close_channels` asks every keeper to let go of what was revoked."""

    operators: Operators
    journal: Journal
    news: News
    pending: Pending
    tokens: Tokens
    logins: Logins
    close_channels: Callable[[list[Json]], Awaitable[tuple[int, int]]]

    def noting(self, kind: str, caller: Caller, why: str | None, facts: Json) -> Commit:
        """A change of who may do what is in the ledger and in the journal, or in neither."""
        return lambda work: self.journal.commit(work, kind, actor=caller.actor, why=why, **facts)


@Whoami.answered
async def whoami(parts: OperatorParts, caller: Caller, request: Whoami) -> Json:
    """The caller as the host sees it; `held` is what it can sign a grant from."""
    now, operators = time.time(), parts.operators
    me = operators.by_id[caller.operator]
    inside = caller.session
    return {
        **operators.view(me, now),
        "host": operators.host,
        "bound_by": [operators.by_id[b].name for b in caller.bound_by if b in operators.by_id],
        "session": inside.id if inside is not None else None,
        "session_name": inside.name if inside is not None else None,
        "held": [[link.as_dict() for link in chain] for chain in operators.chains(me.id)],
    }


@OperatorLs.answered
async def operator_ls(parts: OperatorParts, caller: Caller, request: OperatorLs) -> list[Json]:
    now = time.time()
    everybody = caller.may("view", None)
    rows = [o for o in parts.operators.by_id.values() if everybody or o.id == caller.operator]
    rows = [o for o in rows if request.all or o.revoked_at is None]
    return [parts.operators.view(o, now) for o in sorted(rows, key=lambda o: o.at)]


@OperatorFind.answered
async def operator_find(parts: OperatorParts, caller: Caller, request: OperatorFind) -> Json:
    who = parts.operators.find(request.operator)
    return {"id": who.id, "name": who.name, "kind": who.kind}


@OperatorAdd.answered
async def operator_add(parts: OperatorParts, caller: Caller, request: OperatorAdd) -> Json:
    id, name, kind, key = request.id, request.name, request.kind, request.key
    parts.operators.check_new(name, kind, key)
    if not id.startswith("op_") or not id[3:].isalnum() or len(id) > limits.NAME_MAX or id in parts.operators.by_id:
        raise invalid(f"{id[:40]!a} cannot be a new operator's id", "leave it to the client")
    grant = _checked(parts, request.grant, request.signature, caller, id, kind) if request.grant else None
    facts: Json = {"whom": {"operator": id, "kind": kind, "name": name}, "key": key}
    commit = parts.noting("enrol", caller, request.why, facts)
    who = await asyncio.shield(parts.operators.enrol(id, name, kind, key, caller.operator, commit))
    if grant is not None:
        await _give(parts, grant, str(request.signature), caller, request.why)
    return parts.operators.view(who, time.time())


@OperatorGrant.answered
async def operator_grant(parts: OperatorParts, caller: Caller, request: OperatorGrant) -> Json:
    whom = request.grant.get("operator")
    if not whom:
        raise invalid("no grant is given", "hold operator grant OPERATOR --grant VERB,…")
    who = parts.operators.find(str(whom))
    if who.revoked_at is not None:
        raise HoldfastError("conflict", f"{who.name} was revoked", "enrol it anew, under another name")
    grant = _checked(parts, request.grant, request.signature, caller, who.id, who.kind)
    await _give(parts, grant, request.signature, caller, request.why)
    return parts.operators.grant_view(grant, time.time())


def _checked(
    parts: OperatorParts, given: Json, signature: str | None, caller: Caller, operator: str, kind: str
) -> Grant:
    """The signed grant in a request, checked in every respect."""
    grant = grants.parse(given)
    if grant.operator != operator:
        raise refused("the grant is for someone else", "sign it for the operator it is sent for")
    parts.operators.check_grant(grant, str(signature), caller.operator, kind, time.time())
    for other in caller.bound_by:  # a shell in which others typed cannot pass on what they could not
        if not parts.operators.allows(other, "delegate", None, time.time()):
            raise refused(
                f"{parts.operators.by_id[other].name} had hands on this session and may not delegate",
                "use a terminal of your own",
            )
    return grant


async def _give(parts: OperatorParts, grant: Grant, signature: str, caller: Caller, why: str | None) -> None:
    whom = parts.operators.by_id[grant.operator].actor
    facts: Json = {"grant": grant.as_dict(), "signature": signature, "whom": whom}
    # A caller that leaves meanwhile does not leave half a change behind.
    await asyncio.shield(parts.operators.give(grant, signature, parts.noting("grant", caller, why, facts)))


@OperatorRevoke.answered
async def operator_revoke(parts: OperatorParts, caller: Caller, request: OperatorRevoke) -> Json:
    target, operators = request.target, parts.operators
    grant = operators.grants.get(target)
    if target.startswith("grt_") and grant is None:
        raise not_found(f"no grant {target[:40]!a}", "hold operator ls --json shows them")
    who = operators.find(grant.operator if grant is not None else target)
    _may_revoke(operators, caller, grant, who)
    ending = operators.resting_on(grant, who.id)
    facts = {"whom": who.actor, "grant_id": grant.id if grant else None}
    commit = parts.noting("revoke", caller, request.why, facts)
    if grant is not None:
        await asyncio.shield(operators.revoke_grant(grant, caller.operator, commit))
    else:
        await asyncio.shield(operators.revoke_operator(who, commit))
    requests = parts.pending.recheck("" if grant is not None else who.id)
    parts.tokens.recheck()
    parts.logins.recheck()
    parts.news.note(LIST)  # at once: a keeper that does not let go would keep watchers waiting
    wanted: list[Json] = [] if grant is not None else [{"operator": who.id}]
    closed, unable = await parts.close_channels([*wanted, *({"grant": g} for g in ending)])
    await parts.journal.written()
    return {
        "operator": who.id,
        "name": who.name,
        "grant": grant.id if grant else None,
        "requests": requests,
        "channels": closed,
        "keepers_unable": unable,
    }


def _may_revoke(operators: Operators, caller: Caller, grant: Grant | None, who: Operator) -> None:
    """The giver, or the giver of what it was made from; or one who enrols operators."""
    if who.id == operators.first and (grant is None or grant.parent is None):
        raise refused("the first human cannot be revoked", "it is the owner of this home")
    if caller.may("enrol", None):
        return
    links = next((c for c in operators.chains(who.id) if c[0] is grant), ()) if grant is not None else ()
    if caller.bound_by or not any(link.by == caller.operator for link in links):
        raise refused(f"{caller.name} may not revoke that", "ask who gave it")
