"""The way of every request: identified, checked, admitted, carried out, told to those who wait for changes."""

from __future__ import annotations

from typing import Any

from ..api import checking
from ..api.operation import Operation, find
from ..api.operators import Identify, Prove
from ..model.errors import HoldfastError
from . import admission
from .admission import Admitted
from .change_feed.feed import LIST, TASKS
from .handlers import Handler
from .journal.journal import NotWritten
from .operators.caller import Caller, unresolved
from .operators.key_proofs import KeyProofs
from .revocable_requests import Pending
from .rooms import Rooms
from .server.connection import Peer, Reply
from .sessions import find as finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .daemon import Daemon

Json = dict[str, Any]


class Dispatch:
    """Who asks is identified and what they may is checked here, for every request."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._proofs = KeyProofs(daemon.operators, daemon.refusals)
        self._pending = Pending()
        self.rooms = Rooms(daemon, self.dispatch, self._pending)
        self._handlers: dict[str, Handler] = self.rooms.handlers()

    async def handle(self, message: Json, peer: Peer) -> Reply:
        op = str(message.get("op"))
        kind = find(op)
        if kind is not None and kind.row.on == "connection":
            asked = checking.request(message)
            if isinstance(asked, Identify):
                return Reply({"ok": self._proofs.identify(asked, peer)})
            assert isinstance(asked, Prove)
            return Reply({"ok": self._proofs.prove(asked, peer)})
        try:
            caller = await self._daemon.identities.caller(peer)
        except HoldfastError as e:
            self._daemon.refusals.note(op, actor=None, session=None, **unresolved(peer, e))
            raise
        return await self.dispatch(checking.request(message), caller)

    async def dispatch(self, request: Operation[Any], caller: Caller) -> Reply:
        """Admit a request of a caller that is identified, and carry it out."""
        row = request.row
        admitted: Admitted | None = None
        unwritten = "nothing was done"
        try:
            admitted = Admitted(request, caller, lambda word: finding.visible(self._daemon.registry, word, caller))
            if row.recorded:
                await self._recordable()
            unwritten = admission.UNWRITTEN.get(row.op, "it was done, and its entry in the record waits for the disk")
            handler, result = self._handlers[row.op], self._handlers["exec_result"]
            work = self.rooms.standing.or_stand(handler, request, caller, result)
            answer = await self._pending.run(caller, admitted, work)
        except NotWritten as e:
            raise HoldfastError(e.code, f"{unwritten}: {e.message}", e.hint) from None
        except HoldfastError as e:
            if e.code == "not_allowed":
                where = admitted.session.id if admitted is not None and admitted.session is not None else None
                self._daemon.refusals.note(row.op, e.message, actor=caller.actor, session=where)
                await self._daemon.journal.written()
            raise
        for subject in row.changes:
            if subject in (LIST, TASKS):
                self._daemon.news.note(subject)
        return answer if isinstance(answer, Reply) else Reply({"ok": answer})

    async def _recordable(self) -> None:
        """Write first or do not act: where there is no room for the record, or the last one is not on disk yet."""
        if not self._daemon.reserve.held:
            self._daemon.reserve.keep()
        if self._daemon.journal.failing:
            await self._daemon.journal.written()
