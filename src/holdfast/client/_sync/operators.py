"""Made from _async/operators.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

import time

from ...model import ids
from ...model.errors import HoldfastError
from .calls import Calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Json = dict[str, Any]


class Operators(Calls):
    """A part of Host."""

    def whoami(self) -> Json:
        """The operator this process acts as, where it stands, and its grants."""
        me: Json = self.call("whoami")
        return me

    def operators(self, *, all: bool = False) -> list[Json]:
        """Who is enrolled; with `all` the revoked ones too."""
        found: list[Json] = self.call("operator_ls", all=all)
        return found

    def add_operator(
        self,
        name: str,
        kind: str,
        *,
        verbs: Sequence[str] | None = None,
        sessions: Sequence[str] | None = None,
        ttl: float | None = None,
        depth: int | None = None,
        key: str | None = None,
        why: str | None = None,
    ) -> Json:
        """Enrol an operator; its secret key stays on this machine unless `key` is one's public half from elsewhere."""
        from ...system import signing_keys
        from .. import sign_grant

        wanted = sign_grant.defaults(kind, verbs, sessions)
        me = self.whoami()
        id = ids.new("op_")
        request: Json = {"id": id, "name": name, "kind": kind, "why": why}
        if wanted is not None:
            grant = sign_grant.make(me, id, *wanted, ttl, depth, time.time())
            request.update(grant=grant.as_dict(), signature=sign_grant.sign(self.home.keys, me, grant))
        request["key"] = key or signing_keys.make(self.home.keys, id)
        try:
            made: Json = self.call("operator_add", **request)
        except HoldfastError as e:
            if not key and e.code != "host_gone":  # else it may be enrolled, and needs its key
                signing_keys.forget(self.home.keys, id)
            raise
        return made

    def grant(
        self,
        operator: str,
        verbs: Sequence[str],
        *,
        sessions: Sequence[str] | None = None,
        ttl: float | None = None,
        depth: int | None = None,
        why: str | None = None,
    ) -> Json:
        """Give an operator one more grant, never wider than one's own, signed with one's own key."""
        from .. import sign_grant

        me = self.whoami()
        whom = (self.call("operator_find", operator=operator))["id"]
        globs = list(sessions) if sessions is not None else ["*"]
        grant = sign_grant.make(me, whom, list(verbs), globs, ttl, depth, time.time())
        signature = sign_grant.sign(self.home.keys, me, grant)
        given: Json = self.call("operator_grant", grant=grant.as_dict(), signature=signature, why=why)
        return given

    def revoke(self, operator_or_grant: str, *, why: str | None = None) -> Json:
        """End an operator, or one grant (`grt_…`): its channels and requests end at once."""
        done: Json = self.call("operator_revoke", target=operator_or_grant, why=why)
        return done

    def timeline(
        self, session: str | None = None, *, since: float | None = None, before: int | None = None, limit: int = 1000
    ) -> Json:
        """Who did what: `entries` in order, and `next` to ask for older ones (as `before`)."""
        found: Json = self.call("timeline", session=session, since=since, before=before, limit=limit)
        return found
