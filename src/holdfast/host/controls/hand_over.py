"""The controls change hands: by an operation, and by an answer in the inbox."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from ...api.operation import Operation
from ...model.names import refused
from .. import repeated_requests
from ..journal.journal import Journal
from ..journal.session_entries import note_unless_kept, why_of
from ..journal.spool_ingest import Ingest
from ..observe import session_view
from ..operators.caller import Caller, scope_of
from ..operators.operators import Operators
from ..sessions.session import Session

Json = dict[str, Any]


class HandOver(NamedTuple):
    """`recorded` is awaited before a change of the controls is acknowledged."""

    operators: Operators
    journal: Journal
    ingest: Ingest

    async def hand(
        self, session: Session, whom: str, request: Operation[Any], caller: Caller, note: str | None
    ) -> Json:
        to = self.operators.find(whom)
        if not self.operators.allows(to.id, "type", scope_of(session), time.time()):
            raise refused(f"{to.name} may not type in {session.name}", "grant it first: hold operator grant")
        await repeated_requests.carried_out(session, caller, request)  # the keeper knows, or it cannot be known
        about = {"to": to.actor, "note": note, "why": why_of(request)}
        done = await session.line.act("hand", **about, **named(request, caller))
        session.touched_by(to.id)
        note_unless_kept(self.journal, "hand", session, caller, request, to=to.actor, note=note)
        await self.recorded(session)
        return with_controls(session, done)

    async def recorded(self, session: Session) -> None:
        """A change of the controls is acknowledged when the journal has it, whether keeper or host writes it."""
        if session.spools:
            await self.ingest.fetch(session)
        await self.journal.written()


def named(request: Operation[Any], caller: Caller, part: object = "") -> Json:
    """For whom a keeper is to act, and which request it is: one that was carried out is not carried out again."""
    name = repeated_requests.name_of(request, part)
    return {"as": caller.holding(request)} | ({} if name is None else {"request": name})


def with_controls(session: Session, done: Json) -> Json:
    """What a keeper answered, with the controls as they are now where it was a repeat."""
    now = session.controls if done.get("repeated") else done["controls"]
    return {**done, "controls": session_view.controls_view(now)}
