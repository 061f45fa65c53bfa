"""Operations on the HTTP port: where it is, the tokens of those who come through it, and the browsers let in."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from ...model import web_address
from ...model.errors import invalid
from ...model.limits import TOKEN_TTL_S
from ...model.names import refused
from ..base import Base, number, why_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller
    from ..operators.operators import Commit, Operator

Json = dict[str, Any]
_HASH = re.compile(r"[0-9a-f]{64}")


class WebOps(Base):
    """web, token_add, token_end and token_check; login_add, login_use, login_check and login_end."""

    async def op_web(self, request: Json, caller: Caller) -> Json:
        """Serve HTTP at an address from now on, also after a restart; or no more."""
        listen, url = request.get("listen"), request.get("url")
        if listen is None:
            await asyncio.shield(self.daemon.web.forget())
        else:
            public = None if url is None else web_address.public(str(url))
            await asyncio.shield(self.daemon.web.use(*web_address.parse(str(listen)), public))
        self.journal.note("web", session=None, actor=caller.actor, why=why_of(request), web=self.daemon.web.about())
        await self.journal.written()
        return {"web": self.daemon.web.about()}

    async def op_token_add(self, request: Json, caller: Caller) -> Json:
        """A token for an agent: the client made it, and sends its hash."""
        hash = str(request.get("hash") or "")
        if not _HASH.fullmatch(hash):
            raise invalid("a token comes as the SHA-256 of it", "hold mcp token AGENT makes one")
        who = self.operators.find(str(request.get("operator") or ""))
        ttl = number(request.get("ttl_s"), "a time") or TOKEN_TTL_S
        until = time.time() + ttl
        why, facts = why_of(request), {"whom": who.actor, "until": until}
        await asyncio.shield(
            self.tokens.add(
                hash,
                who,
                caller.operator,
                until,
                lambda work: self.journal.commit(work, "token", actor=caller.actor, why=why, **facts),
            )
        )
        return {"operator": who.id, "name": who.name, "until": until}

    async def op_token_end(self, request: Json, caller: Caller) -> Json:
        who = self.operators.find(str(request.get("operator") or ""))
        why, facts = why_of(request), {"whom": who.actor}
        ended = await asyncio.shield(
            self.tokens.end(
                who, lambda work: self.journal.commit(work, "token_end", actor=caller.actor, why=why, **facts)
            )
        )
        return {"operator": who.id, "name": who.name, "ended": ended}

    async def op_token_check(self, request: Json, caller: Caller) -> Json:
        """Whom a token stands for; with `ended` an answer comes when it no longer stands for anybody."""
        hash = str(request.get("hash") or "")
        who = self.tokens.find(hash, time.time())
        if request.get("ended"):
            await self.tokens.ended(hash)
        return who.actor

    # -- browsers: a person lets in browsers of their own; the owner also those of the other people enrolled here

    async def op_login_add(self, request: Json, caller: Caller) -> Json:
        """A link that lets one browser in: the client made its secret, and sends the hash."""
        who = self._whose(request, caller)
        commit = self._noted("link", request, caller, who)
        until = await asyncio.shield(self.logins.add(_hash(request.get("hash")), who, commit))
        return {"operator": who.id, "name": who.name, "until": until}

    def _whose(self, request: Json, caller: Caller) -> Operator:
        """Whoever comes in has all rights of that person: so nobody makes one who has fewer, or who was not alone."""
        asked = request.get("operator")
        who = self.operators.by_id[caller.operator] if asked is None else self.operators.find(str(asked))
        if caller.kind != "human":
            raise refused("a browser is a person's", "an agent comes with a token: hold mcp token AGENT")
        if caller.bound_by:
            why = "others had hands on this session, and may less than a browser would"
            raise refused(why, "use a terminal of your own")
        owner = caller.operator == self.operators.first and caller.may("enrol", None)
        if not owner and (who.id != caller.operator or who.id == self.operators.first):
            raise refused(f"{caller.name} lets in browsers of their own", "ask the owner of this home")
        return who

    async def op_login_use(self, request: Json, caller: Caller) -> Json:
        """A browser came with a link; `login` is the hash of the secret that it gets for it."""
        self._owner(caller)
        link, login = _hash(request.get("hash")), _hash(request.get("login"))
        commit = self._noted("login", request, caller, self.logins.whose(link))
        return {"until": await asyncio.shield(self.logins.use(link, login, commit))}

    async def op_login_check(self, request: Json, caller: Caller) -> Json:
        """Whose browser it is; with `ended` an answer comes when it is nobody's any more."""
        self._owner(caller)
        hash = _hash(request.get("hash"))
        who, until = self.logins.check(hash, time.time())
        if request.get("ended"):
            await self.logins.ended(hash)
        return {**who.actor, "owner": who.id == self.operators.first, "until": until}

    async def op_login_end(self, request: Json, caller: Caller) -> Json:
        """One browser is out, or, without a hash, all of them."""
        self._owner(caller)
        hash = None if request.get("hash") is None else _hash(request.get("hash"))
        return {"ended": await asyncio.shield(self.logins.end(hash, self._noted("logout", request, caller, None)))}

    def _owner(self, caller: Caller) -> None:
        if caller.operator != self.operators.first:
            raise refused("that is the web process's to ask", "an agent comes with a token: hold mcp token AGENT")

    def _noted(self, kind: str, request: Json, caller: Caller, whom: Operator | None) -> Commit:
        why, facts = why_of(request), {} if whom is None else {"whom": whom.actor}
        return lambda work: self.journal.commit(work, kind, actor=caller.actor, why=why, **facts)


def _hash(value: object) -> str:
    hash = str(value or "")
    if not _HASH.fullmatch(hash):
        raise invalid("a secret comes as the SHA-256 of it", "hold web link makes one")
    return hash
