"""Operations on the HTTP port: where it is, and the tokens of those who come through it."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from ...model import web
from ...model.errors import invalid
from ...model.limits import TOKEN_TTL_S
from .base import Base, number, why_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..identity import Caller

Json = dict[str, Any]
_HASH = re.compile(r"[0-9a-f]{64}")


class WebOps(Base):
    """web, token_add, token_end and token_check."""

    async def op_web(self, request: Json, caller: Caller) -> Json:
        """Serve HTTP at an address from now on, also after a restart; or no more."""
        listen = request.get("listen")
        if listen is None:
            await asyncio.shield(self.daemon.web.forget())
        else:
            await asyncio.shield(self.daemon.web.use(*web.parse(str(listen))))
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
        await asyncio.shield(self.tokens.add(
            hash, who, caller.operator, until,
            lambda work: self.journal.commit(work, "token", actor=caller.actor, why=why, **facts),
        ))  # fmt: skip
        return {"operator": who.id, "name": who.name, "until": until}

    async def op_token_end(self, request: Json, caller: Caller) -> Json:
        who = self.operators.find(str(request.get("operator") or ""))
        why, facts = why_of(request), {"whom": who.actor}
        ended = await asyncio.shield(self.tokens.end(
            who, lambda work: self.journal.commit(work, "token_end", actor=caller.actor, why=why, **facts)
        ))  # fmt: skip
        return {"operator": who.id, "name": who.name, "ended": ended}

    async def op_token_check(self, request: Json, caller: Caller) -> Json:
        """Whom a token stands for; with `ended` an answer comes when it no longer stands for anybody."""
        hash = str(request.get("hash") or "")
        who = self.tokens.find(hash, time.time())
        if request.get("ended"):
            await self.tokens.ended(hash)
        return who.actor
