"""What every family of operations shares: finding a session, looking at it, and the parts of the host they use."""

from __future__ import annotations

import base64
from typing import Any

from ..model import limits
from ..model.errors import invalid
from ..model.sessions.activity import Activity
from .exec.start import Execs
from .inbox.standing_requests import Standing
from .observe import session_view
from .observe.look import Look
from .observe.wait import Waits
from .operators.operators import Operators
from .revocable_requests import Pending
from .screen.emulators import Screens
from .sessions import find
from .sessions.registry import Registry
from .sessions.restart_policy import Policies
from .sessions.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .daemon import Daemon
    from .inbox.inbox_host import Desk
    from .journal.journal import Journal
    from .journal.ledger import Ledger
    from .operators.browser_logins import Logins
    from .operators.caller import Caller
    from .operators.tokens import Tokens

Json = dict[str, Any]


class Base:
    """The state of `Operations`, and the helpers that its families use."""

    daemon: Daemon
    registry: Registry
    screens: Screens
    policies: Policies
    execs: Execs
    waits: Waits
    ledger: Ledger
    journal: Journal
    desk: Desk
    operators: Operators
    tokens: Tokens
    logins: Logins
    pending: Pending
    standing: Standing
    look: Look

    async def _observe(self, session: Session, quick: bool) -> tuple[Json, Activity]:
        return await session_view.observe(session, self.screens, quick=quick)

    async def _observe_fully(self, session: Session) -> tuple[Json, Activity]:
        return await session_view.observe(session, self.screens)

    def _visible(self, request: Json, caller: Caller) -> Session:
        """The session that is meant, among those that the caller may see."""
        return find.visible(self.registry, str(request.get("session") or ""), caller)

    async def _find(self, request: Json, caller: Caller) -> Session:
        return await find.found(self.registry, str(request.get("session") or ""), caller)

    def _note(self, kind: str, session: Session, caller: Caller, request: Json, **facts: Any) -> None:
        """Into the journal: what was done to a session, by whom, and why."""
        self.journal.note(
            kind,
            session=session.id,
            actor=caller.actor,
            why=why_of(request),
            generation=session.manifest["generation"],
            session_name=session.name,
            **facts,
        )

    def _note_unless_kept(self, kind: str, session: Session, caller: Caller, request: Json, **facts: Any) -> None:
        """The same for what a keeper records by itself: only where it is too old to."""
        if not session.spools:
            self._note(kind, session, caller, request, **facts)

    async def _live(self, request: Json, caller: Caller) -> Session:
        return await find.live(self.registry, str(request.get("session") or ""), caller)

    async def _view(self, session: Session, *, full: bool, members: list[int] | None = None) -> Json:
        return await self.look.view(session, full=full, members=members)


def why_of(request: Json) -> str | None:
    """The reason that was given, as much of it as is kept."""
    why = request.get("why")
    return None if why is None else str(why)[: limits.WHY_MAX]


def number(value: object, what: str) -> float | None:
    """A number that can be a time, an offset or a count; None where none was given."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15):
        raise invalid(f"{str(value)[:40]!r} is not {what}", "leave it out")
    return value


def whole(value: object, what: str) -> int | None:
    found = number(value, what)
    return None if found is None else int(found)


def decoded(value: object) -> bytes | None:
    try:
        return None if value is None else base64.b64decode(str(value), validate=True)
    except ValueError:
        raise invalid("what is to be typed is not base64", "use the SDK, or the command line") from None
