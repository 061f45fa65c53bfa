"""Operations on operators and grants: who there is, who may do what, and the end of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from ...model import limits
from ...model.errors import HoldfastError, invalid, not_found
from ...model.names import refused
from ...model.operators import grants
from ..base import Base, why_of
from ..change_feed.feed import LIST
from ..sessions.session import Session
from .caller import scope_of
from .operators import Commit, Operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...model.operators.grants import Grant
    from .caller import Caller

Json = dict[str, Any]


class OperatorOps(Base):
    """whoami, operator_ls, operator_add, operator_grant and operator_revoke."""

    async def op_whoami(self, request: Json, caller: Caller) -> Json:
        """The caller as the host sees it; `held` is what it can sign a grant from."""
        now = time.time()
        me = self.operators.by_id[caller.operator]
        bound = [self.operators.by_id[b].name for b in caller.bound_by if b in self.operators.by_id]
        inside = caller.session
        return {
            **self.operators.view(me, now),
            "host": self.operators.host,
            "bound_by": bound,
            "session": inside.id if inside is not None else None,
            "session_name": inside.name if inside is not None else None,
            "held": [[link.as_dict() for link in chain] for chain in self.operators.chains(me.id)],
        }

    async def op_operator_ls(self, request: Json, caller: Caller) -> list[Json]:
        """Everybody, for one who may see the whole host; else only oneself."""
        now = time.time()
        everybody = caller.may("view", None)
        rows = [o for o in self.operators.by_id.values() if everybody or o.id == caller.operator]
        rows = [o for o in rows if request.get("all") or o.revoked_at is None]
        return [self.operators.view(o, now) for o in sorted(rows, key=lambda o: o.at)]

    async def op_operator_find(self, request: Json, caller: Caller) -> Json:
        """Whom a name means: what one who gives or hands something over has to know."""
        who = self.operators.find(str(request.get("operator") or ""))
        return {"id": who.id, "name": who.name, "kind": who.kind}

    async def op_operator_add(self, request: Json, caller: Caller) -> Json:
        """Enrol an operator by its public key, with a first grant or with none."""
        id, name, kind, key = (str(request.get(k) or "") for k in ("id", "name", "kind", "key"))
        self.operators.check_new(name, kind, key)
        if not id.startswith("op_") or not id[3:].isalnum() or len(id) > limits.NAME_MAX or id in self.operators.by_id:
            raise invalid(f"{id[:40]!a} cannot be a new operator's id", "leave it to the client")
        grant = self._grant_of(request, caller, id, kind) if request.get("grant") else None
        facts: Json = {"whom": {"operator": id, "kind": kind, "name": name}, "key": key}
        commit = self._noting("enrol", caller, request, facts)
        who = await asyncio.shield(self.operators.enrol(id, name, kind, key, caller.operator, commit))
        if grant is not None:
            await self._give(grant, str(request["signature"]), caller, request)
        return self.operators.view(who, time.time())

    async def op_operator_grant(self, request: Json, caller: Caller) -> Json:
        """Give an operator one more grant: signed by the giver, never wider than the giver's own."""
        asked = request.get("grant")
        who = self.operators.find(str(asked.get("operator") or "")) if isinstance(asked, dict) else None
        if who is None:
            raise invalid("no grant is given", "hold operator grant OPERATOR --grant VERB,…")
        if who.revoked_at is not None:
            raise HoldfastError("conflict", f"{who.name} was revoked", "enrol it anew, under another name")
        grant = self._grant_of(request, caller, who.id, who.kind)
        await self._give(grant, str(request.get("signature")), caller, request)
        return self.operators.grant_view(grant, time.time())

    def _grant_of(self, request: Json, caller: Caller, operator: str, kind: str) -> Grant:
        """The signed grant in a request, checked in every respect."""
        value = request.get("grant")
        grant = grants.parse(value if isinstance(value, dict) else {})
        if grant.operator != operator:
            raise refused("the grant is for someone else", "sign it for the operator it is sent for")
        self.operators.check_grant(grant, str(request.get("signature")), caller.operator, kind, time.time())
        for other in caller.bound_by:  # a shell in which others typed cannot pass on what they could not
            if not self.operators.allows(other, "delegate", None, time.time()):
                raise refused(
                    f"{self.operators.by_id[other].name} had hands on this session and may not delegate",
                    "use a terminal of your own",
                )
        return grant

    async def _give(self, grant: Grant, signature: str, caller: Caller, request: Json) -> None:
        whom = self.operators.by_id[grant.operator].actor
        facts: Json = {"grant": grant.as_dict(), "signature": signature, "whom": whom}
        # Whoever leaves meanwhile does not leave half a change behind.
        await asyncio.shield(self.operators.give(grant, signature, self._noting("grant", caller, request, facts)))

    def _noting(self, kind: str, caller: Caller, request: Json, facts: Json) -> Commit:
        """A change of who may do what is in the ledger and in the journal, or in neither."""
        why = why_of(request)
        return lambda work: self.journal.commit(work, kind, actor=caller.actor, why=why, **facts)

    # -- revoking

    async def op_operator_revoke(self, request: Json, caller: Caller) -> Json:
        """End a grant, or all of an operator: its channels and its requests end with it."""
        target = str(request.get("target") or "")
        grant = self.operators.grants.get(target)
        if target.startswith("grt_") and grant is None:
            raise not_found(f"no grant {target[:40]!a}", "hold operator ls --json shows them")
        who = self.operators.find(grant.operator if grant is not None else target)
        self._may_revoke(caller, grant, who)
        ending = self.operators.resting_on(grant, who.id)
        commit = self._noting("revoke", caller, request, {"whom": who.actor, "grant_id": grant.id if grant else None})
        if grant is not None:
            await asyncio.shield(self.operators.revoke_grant(grant, caller.operator, commit))
        else:
            await asyncio.shield(self.operators.revoke_operator(who, commit))
        requests = self.pending.recheck("" if grant is not None else who.id)
        self.tokens.recheck()
        self.logins.recheck()
        self.daemon.news.note(LIST)  # at once: a keeper that does not let go would keep watchers waiting
        wanted: list[Json] = [] if grant is not None else [{"operator": who.id}]
        closed, unable = await self._close_channels([*wanted, *({"grant": g} for g in ending)])
        await self.journal.written()
        return {
            "operator": who.id,
            "name": who.name,
            "grant": grant.id if grant else None,
            "requests": requests,
            "channels": closed,
            "keepers_unable": unable,
        }

    def _may_revoke(self, caller: Caller, grant: Grant | None, who: Operator) -> None:
        """Who gave it, or who gave what it was made from; or one who enrols operators."""
        if who.id == self.operators.first and (grant is None or grant.parent is None):
            raise refused("the first human cannot be revoked", "it is the owner of this home")
        if caller.may("enrol", None):
            return
        links = next((c for c in self.operators.chains(who.id) if c[0] is grant), ()) if grant is not None else ()
        if caller.bound_by or not any(link.by == caller.operator for link in links):
            raise refused(f"{caller.name} may not revoke that", "ask who gave it")

    async def _close_channels(self, wanted: list[Json]) -> tuple[int, int]:
        """Ask every keeper at once to let go; how many channels were closed, and how many keepers are too old to."""
        closed = unable = 0

        async def one(session: Session) -> None:
            nonlocal closed, unable
            for what in wanted:
                if not session.connected:
                    return
                try:
                    closed += int((await session.line.act("revoke", **what)).get("closed") or 0)
                except HoldfastError as e:
                    unable += e.code == "unsupported"
                    return
            await self._dispossess(session)

        await asyncio.gather(*(one(s) for s in list(self.registry.sessions.values())))
        return closed, unable

    async def _dispossess(self, session: Session) -> None:
        """Controls that were taken without a channel are given up by one who may not type any more."""
        holder = self.operators.by_id.get(str(session.controls.get("holder")))
        if holder is None or not session.connected:
            return
        if not self.operators.allows(holder.id, "type", scope_of(session), time.time()):
            with contextlib.suppress(HoldfastError):  # it let go by itself
                await session.line.act("revoke", operator=holder.id)
