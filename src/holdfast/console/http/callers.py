"""Host connections per caller (browser or token), each with that operator's rights."""

from __future__ import annotations

import contextlib
import secrets
from typing import Any, NamedTuple

from ...client._async.host import AsyncHost
from ...model import web_address
from ...model.errors import HoldfastError
from . import headers

Json = dict[str, Any]


class Where(NamedTuple):
    """Where this port listens, and the user's public address for it, if any."""

    host: str
    port: int
    public: str | None = None

    @property
    def addresses(self) -> list[str]:
        """All origins of this port, the one for other devices first."""
        listed = sorted(web_address.origins(self.host, self.port, self.public))
        return sorted(listed, key=lambda one: (one != self.public, "localhost" in one))


class Callers:
    """One connection pool per operator."""

    def __init__(self, owner: AsyncHost, where: Where) -> None:
        self.owner, self.where, self.port = owner, where, where.port
        self._others: dict[str, AsyncHost] = {}

    def host_of(self, operator: str) -> AsyncHost:
        """A host connection with exactly that operator's rights."""
        if operator not in self._others:
            self._others[operator] = AsyncHost(self.owner.home.path, operator=operator)
            self._others[operator].ancestor = None  # the caller's process is not known here
        return self._others[operator]

    def host_for(self, who: Json) -> AsyncHost:
        """A host connection for the browser's person; this process itself runs as the owner."""
        return self.owner if who["owner"] else self.host_of(str(who["operator"]))

    async def by_token(self, hash: str) -> Json | None:
        return await self._found("token_check", hash)

    async def by_cookie(self, hashes: list[str]) -> tuple[str, Json] | None:
        """The first cookie that is logged in: its hash, and its person."""
        for hash in hashes:
            who = await self._found("login_check", hash)
            if who is not None:
                return hash, who
        return None

    async def _found(self, op: str, hash: str) -> Json | None:
        try:
            who: Json = await self.owner.call(op, hash=hash)
        except HoldfastError as e:
            if e.code != "not_allowed":
                raise
            return None
        return who

    async def has_ended(self, op: str, hash: str) -> bool:
        """Whether this login or token is no longer valid; False if the host cannot be asked."""
        with contextlib.suppress(HoldfastError):
            return await self._found(op, hash) is None
        return False

    async def log_in(self, link: str) -> str:
        """Use up a link; returns the secret for the browser's cookie."""
        secret = secrets.token_urlsafe(32)
        await self.owner.call("login_use", hash=headers.hashed(link), login=headers.hashed(secret))
        return secret

    async def log_out(self, hashes: list[str]) -> None:
        for hash in hashes:
            await self.owner.call("login_end", hash=hash)

    def close(self) -> None:
        for host in self._others.values():
            host.close()
