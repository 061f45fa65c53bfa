"""Carrying out, later, what a person was asked about: the request as it was made, as who made it, once."""

from __future__ import annotations

import time
from typing import Any

from ...api.operation import Operation, find
from ...model.errors import HoldfastError
from ..exec.ops import Commands
from ..isolation.session_socket import DoorCaller
from ..server.connection import Reply
from ..sessions import handed
from ..sessions.session import Session
from .standing_requests import Asked, pending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..handlers import Handler
    from ..operators.caller import Caller

Json = dict[str, Any]


class StandingOps(Commands):
    """What stands behind `standing` in a request (host/inbox/standing_requests.py)."""

    async def dispatch(self, request: Operation[Any], caller: Caller) -> Reply:
        raise NotImplementedError

    async def _or_stand(self, handler: Handler, request: Operation[Any], caller: Caller) -> Any:
        """An operation's answer; where its request stands in the inbox now, how that stands when the time is up."""
        began = time.monotonic()
        try:
            return await handler(caller, request)
        except Asked as e:
            ask = e.ask
        timeout: float | None = getattr(request, "timeout", None)
        item = await self._decided(ask, timeout, caller)
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        return await self._told(item, caller, left)

    async def _told(self, item: Json, caller: Caller, left: float | None) -> Json:
        stands = item["stands"]
        if stands["op"] == "exec":
            known = {"session": item["session"], "exec_id": stands["exec_id"]}
            return await self.op_exec_result({**known, "wait": True, "timeout": left}, caller)
        if not stands.get("done"):
            return pending(item)
        await self.standing.told(item["id"])
        if stands["op"] != "run":
            done: Json = stands["outcome"]
            return done
        session = self._started_by(stands["run"])
        if session is None:
            raise HoldfastError("conflict", "what was started was removed again", "start it anew")
        return await self._view(session, full=True)

    def _started_by(self, run: str) -> Session | None:
        return next((s for s in self.registry.sessions.values() if s.manifest.get("request") == run), None)

    # -- carrying out

    async def _carry_out(self, item: Json) -> Json | None:
        """What a yes allows. What is returned is kept, for the asker; of a command and a start nothing need be."""
        stands = item["stands"]
        caller = self.daemon.identities.again(stands["as"])
        if stands["as"].get("door"):
            caller = DoorCaller(caller, self.registry.find(stands["as"]["door"], lambda s: True))
        caller.approved = item["id"]
        if stands["op"] == "exec" and await self._was_begun(item):
            return None
        if stands["op"] == "run" and await self._was_started(stands["run"], caller):
            return None
        request = stands["request"]
        if stands["op"] == "send":  # the keeper knows by the request's id whether the last host had typed it
            if stands.get("begun_at"):
                request = {**request, "asked_s_ago": max(0.0, time.time() - stands["begun_at"])}
            else:
                await self.desk.inbox.amend_request(item["id"], {"begun_at": time.time()})
        kind = find(stands["op"])
        assert kind is not None
        reply = await self.dispatch(kind(**{k: v for k, v in request.items() if k != "op"}), caller)
        return dict(reply.value["ok"]) if stands["op"] == "send" else None

    async def _was_begun(self, item: Json) -> bool:
        """Whether the command was typed, by the host that died over it."""
        session = self.registry.sessions.get(item["session"])
        if session is None:
            raise HoldfastError("conflict", f"{item['session_name']} was removed", "start it anew")
        if session.link is None and session.unresponsive:
            await self.registry.connect(session)
        if session.unresponsive:
            raise HoldfastError("busy", f"{session.name} does not answer", "it is tried again")
        return await self._was_typed(session, item["stands"]["exec_id"])

    async def _was_started(self, run: str, caller: Caller) -> bool:
        """Whether the program was started. A host that dies over a start leaves a session that no keeper took up: it
        makes way for the one that was asked for."""
        session = self._started_by(run)
        if session is None:
            return False
        await session.settled()
        if session.state != "lost" or not handed.unseen(session):
            return True
        self._note("remove", session, caller, {"why": "the host died before a keeper took up its start"})
        self.registry.remove(session)
        return False
