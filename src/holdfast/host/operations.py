"""What clients may ask of the host: the families joined, and the one place where a request is admitted."""

from __future__ import annotations

from typing import Any

from ..model.errors import HoldfastError
from .exec.run import Execs
from .identity import Caller
from .ops.acting import Acting
from .ops.channels import Channels
from .ops.commands import Commands
from .ops.lifetime import Lifetime
from .ops.looking import Looking
from .server import Peer, Reply
from .session import Session
from .waits import Waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .daemon import Daemon

Json = dict[str, Any]


class Operations(Looking, Channels, Lifetime, Acting, Commands):
    """Dispatch by name; everything is checked here before it reaches a keeper."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.registry, self.screens, self.policies = daemon.registry, daemon.screens, daemon.policies
        self.ledger, self.journal = daemon.ledger, daemon.journal
        self.policies.observe = self._observe_fully
        self.execs = Execs(self._observe)
        self.waits = Waits(self._observe_fully, self.execs.done)

    def heard(self, session: Session, event: Json) -> None:
        self.execs.heard(session, event)

    async def handle(self, request: Json, peer: Peer) -> Reply:
        for inner in ("isolation", "door"):  # what only a door may say
            request.pop(inner, None)
        return await self.dispatch(request, self._caller(request))

    async def dispatch(self, request: Json, caller: Caller) -> Reply:
        method = getattr(self, "op_" + str(request.get("op")), None)
        if method is None:
            raise HoldfastError(
                "usage", f"this host does not know {request.get('op')!r}", "upgrade: hold down, then again"
            )
        answer = await method(request, caller)
        return answer if isinstance(answer, Reply) else Reply({"ok": answer})

    def acting(self, session: Session) -> Caller:
        """Who a session acts as: what comes through its door is that operator."""
        return Caller(self.daemon.identity["operator"], session)

    def _caller(self, request: Json) -> Caller:
        """Who acts. Until others are enrolled there is one operator: the OS user, a human."""
        me: Json = self.daemon.identity["operator"]
        wanted = request.get("operator")
        if wanted and wanted not in (me["name"], me["operator"]):
            raise HoldfastError(
                "not_allowed", f"no operator {str(wanted)[:60]!r} is enrolled here", "unset HOLDFAST_OPERATOR"
            )
        return Caller(me)
