"""Who is calling: an operator with its grants, and the session it calls from."""

from __future__ import annotations

from typing import Any

from ..model.errors import HoldfastError
from .session import Session

Json = dict[str, Any]


class Caller:
    """One request's operator: what it is called, where it calls from, and what it may do."""

    def __init__(self, actor: Json, session: Session | None = None) -> None:
        self.actor, self.session = actor, session

    @property
    def operator(self) -> str:
        return str(self.actor["operator"])

    @property
    def kind(self) -> str:
        return str(self.actor["kind"])

    @property
    def name(self) -> str:
        return str(self.actor["name"])

    def may(self, verb: str, session: Session | None) -> bool:
        return True

    def require(self, verb: str, session: Session | None) -> None:
        if not self.may(verb, session):
            raise HoldfastError("not_allowed", f"{self.name} may not {verb} here", "ask for a grant")
