"""The rooms of the host, each with the record of what its handlers use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ..api.operation import Operation, load_all
from ..system.atomic_files import write_json
from . import doctor_checks
from . import ops as host
from .change_feed import ops as change_feed
from .change_feed.feed import TASKS
from .channels import ops as channels
from .controls import ops as controls
from .controls.hand_over import HandOver
from .exec import ops as exec_
from .exec.start import Execs
from .handlers import Handler, Room, collected, complete
from .inbox import ops as inbox
from .inbox.answering import Answering
from .inbox.approval_requests import Approvals
from .inbox.carry_out import CarryOut
from .inbox.visible_items import VisibleItems
from .journal import ops as journal
from .observe import ops as observe
from .observe import session_view
from .observe.wait import Waits
from .operators import ops as operators
from .operators.caller import Caller
from .operators.revoke_channels import close_channels
from .revocable_requests import Pending
from .server.connection import Reply
from .sessions import ops as sessions
from .sessions.session import Session
from .web import ops as web
from .work import store_ops as store
from .work.calls import WorkCalls
from .work.store import WorkStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.sessions.activity import Activity
    from .daemon import Daemon

Json = dict[str, Any]


class Rooms:
    """What several rooms use, made once; and every handler with its record."""

    def __init__(
        self,
        daemon: Daemon,
        dispatch: Callable[[Operation[Any], Caller], Awaitable[Reply]],
        pending: Pending,
    ) -> None:
        d = self._daemon = daemon
        self._pending = pending
        self.execs = Execs(self._observe)
        self.standing = CarryOut(d.registry, d.desk.inbox, d.identities, d.journal, d.look, dispatch)
        self._waits = Waits(self._observe, self._done)
        self._approvals = Approvals(d.desk, self.standing.standing, d.registry, d.operators, self.execs, d.journal)
        self.standing.approvals = self._approvals
        self._hand_over = HandOver(d.operators, d.journal, d.ingest)
        self._work_store = WorkStore(d.stores, d.identity["id"], news=lambda: d.news.note(TASKS), replaced=self._leave)
        self.work = WorkCalls(self._work_store, d.desk, d.registry, d.operators, d.identities, self._confirmed)
        d.policies.observe = self._observe

    async def _observe(self, session: Session, quick: bool = False) -> tuple[Json, Activity]:
        return await session_view.observe(session, self._daemon.screens, quick=quick)

    async def _before_down(self, by: str, stay: bool) -> list[str]:
        """The workers that hold leases of this host. One that stays down gives them back, and says so to commands."""
        held = await self._work_store.held(give_back=stay)
        if stay:
            write_json(self._daemon.home.stays_down, {"by": by})
        return held

    def _leave(self) -> None:
        """End the host; also where another daemon of this home has opened its store."""
        self._daemon.stopped.set()

    def _confirmed(self) -> bool:
        return self._daemon.confirmed

    async def _done(self, session: Session, exec_id: str) -> tuple[str, int, Json]:
        """For `wait` until `done=…`: a command that a person is asked about has not ended."""
        return await self.execs.done(session, await self.standing.standing.begun_as(session.id, exec_id))

    def handlers(self) -> dict[str, Handler]:
        """By operation; an operation without a handler, or with two, stops the start."""
        found = collected(self._rooms())
        for op, kind in load_all().items():
            if kind.row.right == "work" and op not in found:
                found[op] = self.work.answer
        complete([*found, *(op for op, kind in load_all().items() if kind.row.on == "connection")])
        return found

    def _rooms(self) -> list[Room]:
        d, approvals, settings = self._daemon, self._approvals, self._daemon.desk.settings
        standing = self.standing.standing
        answering = Answering(d.desk, d.registry, d.screens, approvals, self._hand_over, d.journal)
        parked, findings = self.work.look_for_parked, partial(doctor_checks.check, d)
        return [
            (host, host.HostParts(d.home, d.journal, d.stores, settings, self._confirmed, d.about, findings)),
            (observe, observe.ObserveParts(d.registry, d.screens, d.look, self._waits, d.about)),
            (change_feed, change_feed.FeedParts(d.registry, d.news)),
            (channels, channels.ChannelParts(d.registry, d.screens, approvals, settings)),
            (
                sessions,
                sessions.SessionParts(
                    d.registry,
                    d.look,
                    d.screens,
                    d.policies,
                    d.operators,
                    approvals,
                    d.desk.gate,
                    d.journal,
                    d.ingest,
                    d.about,
                    self._before_down,
                    self._leave,
                ),
            ),
            (
                controls,
                controls.ControlParts(d.registry, approvals, self._hand_over, settings, d.journal, d.ledger),
            ),
            (exec_, exec_.ExecParts(d.registry, self.execs, approvals, standing, d.journal)),
            (
                inbox,
                inbox.InboxParts(
                    d.desk, VisibleItems(d.desk.inbox, d.registry), answering, d.registry, d.journal, parked
                ),
            ),
            (journal, journal.JournalParts(d.registry, d.journal, d.ledger)),
            (
                operators,
                operators.OperatorParts(
                    d.operators,
                    d.journal,
                    d.news,
                    self._pending,
                    d.tokens,
                    d.logins,
                    partial(close_channels, d.registry, d.operators),
                ),
            ),
            (web, web.WebParts(d.web, d.operators, d.tokens, d.logins, d.journal)),
            (store, store.StoreParts(d.home, d.stores, self._work_store, d.journal)),
        ]

    def heard(self, session: Session, event: Json) -> None:
        """What a keeper tells of its session."""
        self.execs.heard(session, event)
        kind = event.get("event")
        if kind in ("controls", "linked") and session.controls.get("holder"):
            session.touched_by(str(session.controls["holder"]))
        elif kind == "gone" and not session.spools:
            self._daemon.journal.note(
                "ended",
                session=session.id,
                actor=None,
                generation=session.manifest["generation"],
                session_name=session.name,
                exit=session.exit,
                state=session.state,
            )
