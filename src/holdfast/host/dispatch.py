"""What clients may ask of the host: the families joined, and the one place where a request is admitted."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ..api import checking
from ..api.operation import Operation, find, load_all
from ..model.errors import HoldfastError
from ..model.names import refused
from ..system import signing_keys
from ..wire import key_proof
from . import admission
from .admission import Admitted
from .change_feed import ops as change_feed
from .change_feed.feed import LIST, TASKS
from .channels.ops import Channels
from .controls.ops import Acting
from .exec.start import Execs
from .handlers import Handler, collected, complete
from .inbox.ops import Asking
from .inbox.standing_ops import StandingOps
from .inbox.standing_requests import Standing
from .journal import ops as journal
from .journal.journal import NotWritten
from .observe import ops as observe
from .observe.wait import Waits
from .operators import ops as operators
from .operators.caller import Caller, unresolved
from .operators.revoke_channels import close_channels
from .revocable_requests import Pending
from .server.connection import Peer, Reply
from .sessions.ops import Lifetime
from .sessions.session import Session
from .web import ops as web
from .work.ops import WorkOps
from .work.store import WorkStore
from .work.store_ops import StoreOps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .daemon import Daemon

Json = dict[str, Any]
Method = Callable[[Json, Caller], Awaitable[Any]]


class Operations(
    Channels,
    Lifetime,
    Asking,
    Acting,
    StandingOps,
    WorkOps,
    StoreOps,
):
    """Dispatch by name; who asks is identified and what they may is checked here, for every request."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.registry, self.screens, self.policies = daemon.registry, daemon.screens, daemon.policies
        self.ledger, self.journal, self.operators = daemon.ledger, daemon.journal, daemon.operators
        self.desk, self.tokens, self.logins = daemon.desk, daemon.tokens, daemon.logins
        self.pending = Pending()
        self.look = daemon.look
        self.work_store = WorkStore(daemon.stores)
        self.policies.observe = self._observe_fully
        self.execs = Execs(self._observe)
        self.waits = Waits(self._observe_fully, self._done)
        self.standing = Standing(self.desk.inbox, self._carry_out)
        self._handlers = self._collected()

    def heard(self, session: Session, event: Json) -> None:
        self.execs.heard(session, event)
        kind = event.get("event")
        if kind in ("controls", "linked") and session.controls.get("holder"):
            session.touched_by(str(session.controls["holder"]))
        elif kind == "gone" and not session.spools:
            self.journal.note(
                "ended",
                session=session.id,
                actor=None,
                generation=session.manifest["generation"],
                session_name=session.name,
                exit=session.exit,
                state=session.state,
            )

    async def handle(self, message: Json, peer: Peer) -> Reply:
        op = str(message.get("op"))
        kind = find(op)
        if kind is not None and kind.row.on == "connection":
            asked = vars(checking.request(message))
            return Reply({"ok": self._identify(asked, peer) if op == "identify" else self._prove(asked, peer)})
        try:
            caller = await self.daemon.identities.caller(peer)
        except HoldfastError as e:
            self.daemon.refusals.note(op, actor=None, session=None, **unresolved(peer, e))
            raise
        return await self.dispatch(checking.request(message), caller)

    async def dispatch(self, request: Operation[Any], caller: Caller) -> Reply:
        """Admit a request of a caller that is identified, and carry it out."""
        row = request.row
        admitted: Admitted | None = None
        unwritten = "nothing was done"
        try:
            admitted = Admitted(request, caller, lambda word: self._visible({"session": word}, caller))
            if row.recorded:
                await self._recordable()
            unwritten = admission.UNWRITTEN.get(row.op, "it was done, and its entry in the record waits for the disk")
            answer = await self.pending.run(caller, admitted, self._or_stand(self._handlers[row.op], request, caller))
        except NotWritten as e:
            raise HoldfastError(e.code, f"{unwritten}: {e.message}", e.hint) from None
        except HoldfastError as e:
            if e.code == "not_allowed":
                where = admitted.session.id if admitted is not None and admitted.session is not None else None
                self.daemon.refusals.note(row.op, e.message, actor=caller.actor, session=where)
                await self.journal.written()
            raise
        for subject in row.changes:
            if subject in (LIST, TASKS):
                self.daemon.news.note(subject)
        return answer if isinstance(answer, Reply) else Reply({"ok": answer})

    def _collected(self) -> dict[str, Handler]:
        """What carries out each operation: a function of a room, a method of a family here, or the work plane."""
        d = self.daemon
        closing = partial(close_channels, d.registry, d.operators)
        found = collected(
            [
                (observe, observe.ObserveParts(d.registry, d.screens, self.look, self.waits, d.about)),
                (change_feed, change_feed.FeedParts(d.registry, d.news)),
                (journal, journal.JournalParts(d.registry, d.journal, d.ledger)),
                (
                    operators,
                    operators.OperatorParts(d.operators, d.journal, d.news, self.pending, d.tokens, d.logins, closing),
                ),
                (web, web.WebParts(d.web, d.operators, d.tokens, d.logins, d.journal)),
            ]
        )
        for op, kind in load_all().items():
            method: Method | None = getattr(self, f"op_{op}", None)
            if method is None and kind.row.right == "work":
                method = partial(self.work_call, kind.row)
            if method is not None and op not in found:
                found[op] = partial(_with_table, method)
        complete([*found, *(op for op, kind in load_all().items() if kind.row.on == "connection")])
        return found

    async def _recordable(self) -> None:
        """Write first or do not act: where there is no room for the record, or the last one is not on disk yet."""
        if not self.daemon.reserve.held:
            self.daemon.reserve.keep()
        if self.journal.failing:
            await self.journal.written()

    # -- proving a key -------------------------------------------------------------------------------------------

    def _identify(self, request: Json, peer: Peer) -> Json:
        """Something to sign, good for this connection and one try."""
        peer.nonce = os.urandom(key_proof.NONCE_BYTES)
        wanted = str(request.get("operator") or "")
        try:
            who = self.operators.find(wanted).id
        except HoldfastError:
            self._forged(peer, f"no operator {wanted[:60]!a} is enrolled here")
            raise refused(f"no operator {wanted[:60]!a} is enrolled here", "unset HOLDFAST_OPERATOR") from None
        return {"host": self.operators.host, "operator": who, "nonce": peer.nonce.hex()}

    def _prove(self, request: Json, peer: Peer) -> Json:
        nonce, peer.nonce = peer.nonce, None
        who = self.operators.by_id.get(str(request.get("operator")))
        message = key_proof.message(self.operators.host, nonce or b"", who.id if who else "")
        if nonce is None or who is None or not signing_keys.signed(who.key, str(request.get("signature")), message):
            self._forged(peer, "the proof of an operator's key did not hold")
            raise refused("that is not proof of the operator's key", "is it the key that was enrolled?")
        if who.revoked_at is not None:
            self._forged(peer, f"{who.name} was revoked")
            raise refused(f"{who.name} was revoked", "ask who enrolled it")
        peer.proven = who.id
        return who.actor

    def _forged(self, peer: Peer, reason: str) -> None:
        self.daemon.refusals.note("prove", reason, actor=None, session=None, pid=peer.pid, uid=peer.uid)


async def _with_table(method: Method, caller: Caller, request: Operation[Any]) -> Any:
    return await method({"op": request.row.op, **vars(request)}, caller)
