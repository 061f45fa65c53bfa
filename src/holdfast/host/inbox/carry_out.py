"""Carrying out, later, what a person was asked about: the request as it was made, as who made it, once."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from ...api.exec import ExecResult
from ...api.operation import Operation, find
from ...api.sessions import Remove
from ...model.errors import HoldfastError
from ..handlers import Handler
from ..isolation.session_socket import DoorCaller
from ..journal.journal import Journal
from ..journal.session_entries import note
from ..observe.look import Look
from ..operators.caller import Caller, Identities
from ..server.connection import Reply
from ..sessions import late_start
from ..sessions.registry import Registry
from ..sessions.session import Session
from .approval_requests import Approvals
from .items import Inbox
from .standing_requests import Asked, Standing, pending

Json = dict[str, Any]


class CarryOut:
    """What stands behind `standing` in a request (standing_requests.py). `dispatch` is the host's."""

    approvals: Approvals

    def __init__(
        self,
        registry: Registry,
        inbox: Inbox,
        identities: Identities,
        journal: Journal,
        look: Look,
        dispatch: Callable[[Operation[Any], Caller], Awaitable[Reply]],
    ) -> None:
        self._registry, self._inbox, self._identities = registry, inbox, identities
        self._journal, self._look, self._dispatch = journal, look, dispatch
        self.standing = Standing(inbox, self.carry_out)

    async def or_stand(self, handler: Handler, request: Operation[Any], caller: Caller, exec_result: Handler) -> Any:
        """An operation's answer; where its request stands in the inbox now, how that stands when the time is up."""
        began = time.monotonic()
        try:
            return await handler(caller, request)
        except Asked as e:
            ask = e.ask
        timeout: float | None = getattr(request, "timeout", None)
        item = await self.standing.decided_for(ask, timeout, caller.everyone)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        stands = item["stands"]
        if stands["op"] == "exec":
            known = ExecResult(session=item["session"], exec_id=stands["exec_id"], wait=True, timeout=left)
            return await exec_result(caller, known)
        if not stands.get("done"):
            return pending(item)
        await self.standing.told(item["id"])
        if stands["op"] != "run":
            return stands["outcome"]
        session = self._started_by(stands["run"])
        if session is None:
            raise HoldfastError("conflict", "what was started was removed again", "start it anew")
        return await self._look.view(session, full=True)

    def _started_by(self, run: str) -> Session | None:
        return next((s for s in self._registry.sessions.values() if s.manifest.get("request") == run), None)

    async def carry_out(self, item: Json) -> Json | None:
        """What a yes allows. What is returned is kept, for the asker; of a command and a start nothing need be."""
        stands = item["stands"]
        caller = self._identities.again(stands["as"])
        if stands["as"].get("door"):
            caller = DoorCaller(caller, self._registry.find(stands["as"]["door"], lambda s: True))
        caller.approved = item["id"]
        if stands["op"] == "exec" and await self._was_begun(item):
            return None
        if stands["op"] == "run" and await self._was_started(stands["run"], caller):
            return None
        fields = {name: value for name, value in stands["request"].items() if name != "op"}
        if stands["op"] == "send":  # the keeper knows by the request's id whether the last host had typed it
            if stands.get("begun_at"):
                fields["asked_s_ago"] = max(0.0, time.time() - stands["begun_at"])
            else:
                await self._inbox.amend_request(item["id"], {"begun_at": time.time()})
        kind = find(stands["op"])
        assert kind is not None
        reply = await self._dispatch(kind(**fields), caller)
        return dict(reply.value["ok"]) if stands["op"] == "send" else None

    async def _was_begun(self, item: Json) -> bool:
        """Whether the command was typed, by the host that died over it."""
        session = self._registry.sessions.get(item["session"])
        if session is None:
            raise HoldfastError("conflict", f"{item['session_name']} was removed", "start it anew")
        if session.unreachable:
            await self._registry.connect(session)
        if session.unreachable:
            raise HoldfastError("busy", f"{session.name} does not answer", "it is tried again")
        return await self.approvals.was_typed(session, item["stands"]["exec_id"])

    async def _was_started(self, run: str, caller: Caller) -> bool:
        """Whether the program was started. A host that dies over a start leaves a session that no keeper took up: it
        makes way for the one that was asked for."""
        session = self._started_by(run)
        if session is None:
            return False
        await session.settled()
        if session.state != "lost" or not late_start.unseen(session):
            return True
        removal = Remove(session=session.id, why="the host died before a keeper took up its start")
        note(self._journal, "remove", session, caller, removal)
        self._registry.remove(session)
        return False
