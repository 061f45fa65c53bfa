"""Whether a caller may ask for an operation: its row says which right that takes, and on what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..api.operation import Operation
from ..model.names import refused
from ..model.operators.grants import Scope
from .operators.caller import Caller, scope_of
from .sessions.session import Session

# What became of an operation whose entry cannot be written. Only a few write theirs first.
UNWRITTEN = {"rm": "it was not removed", "prune": "not all were removed", "rename": "it was not renamed"}
_LOOK = "hold operator whoami shows what you may do"


class Admitted:
    """An operation that was let through: the session and the scope that its right is about, if it is about one."""

    __slots__ = ("_caller", "_on", "right", "scope", "session")

    def __init__(self, request: Operation[Any], caller: Caller, visible: Callable[[str], Session]) -> None:
        """Raises where the caller may not. `visible` finds a session among those that the caller may see."""
        row = request.row
        self._caller, self._on, self.right = caller, row.on, row.right
        self.session: Session | None = None
        named = getattr(request, "session", None)
        if row.on == "session" or (row.right == "view" and named):
            self.session = visible(str(named or ""))
        self.scope = self._scope(request)
        if row.on == "host" or self.session is not None:
            caller.require(row.right, self.session)
        elif not self.still():
            what = "start that" if row.on == "new" else f"{row.right} here"
            raise refused(f"{caller.name} may not {what}", _LOOK)
        if row.also:
            caller.require(row.also, None)

    def _scope(self, request: Operation[Any]) -> Scope | None:
        """What the right is about: a session that is, or one of the caller's own that may be."""
        if self.session is not None:
            return scope_of(self.session)
        if self._on not in ("new", "own"):
            return None
        name = str(getattr(request, "name", None) or "") if self._on == "new" else ""
        return Scope("", name, self._caller.operator, self._caller.operator)

    def still(self) -> bool:
        """Whether it would be let through now."""
        if self.session is not None or self._on == "host":
            return self._caller.may(self.right, self.session)
        # Without a scope the operation asks for each session by itself, or is each caller's own.
        return self.scope is None or self._caller.may_in(self.right, self.scope)
