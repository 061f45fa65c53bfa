"""Operations on a session's life: start, stop, restart, rename, remove; and the host's own end."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from ...model import limits
from ...model.errors import HoldfastError, invalid
from ...model.names import refused
from ...model.operators.grants import Scope
from ...model.times import rfc3339
from .. import repeated_requests
from ..base import number, why_of
from ..inbox.approval_requests import Approving
from ..journal.missed_entries import words
from ..observe import session_view
from ..observe.look import restarting
from ..operators.caller import scope_of
from . import handed, jupyter_kernel, late_start, manifest, survivors
from .session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_STOP_EXTRA_S = 15.0  # past the grace time, for KILL to empty a large tree


class Lifetime(Approving):
    """run, started, down, stop, restart, rm, rename and prune."""

    async def op_run(self, request: Json, caller: Caller) -> Json:
        request = await jupyter_kernel.resolved(request)
        if request.get("acts_as"):
            request = {**request, "acts_as": self._acts_as(str(request["acts_as"]), caller)}
        await self._approve_run(request, caller)
        session = await asyncio.shield(self._start(request, caller))  # who leaves meanwhile leaves an entry too
        brief = {"id": session.id, "name": session.name, "unenforced": session.manifest.get("unenforced") or []}
        answer = brief if request.get("brief") else await self._view(session, full=True)
        if self.journal.failing:  # else nobody waits: a manifest is durable, and owes its entry to any host to come
            await self.journal.written()
        return answer

    async def _start(self, request: Json, caller: Caller) -> Session:
        unnoted: list[HoldfastError] = []

        def begun(session: Session) -> None:
            try:
                self._note(
                    "start",
                    session,
                    caller,
                    request,
                    command=words(session),
                    cwd=session.manifest["cwd"],
                    acts_as=session.manifest["acts_as"],
                    owed=True,
                )
            except HoldfastError as e:  # its program runs: the session stays, and whoever asked hears of the journal
                unnoted.append(e)

        bound = (*caller.bound_by, *self._authors(request.get("written_by")))
        session = await self.registry.start(request, caller.actor, bound, begun)
        if unnoted:
            raise unnoted[0]
        return session

    def _acts_as(self, wanted: str, caller: Caller) -> str:
        """The operator a new session acts as: the caller, or one whose rights the caller may give away."""
        who = self.operators.find(wanted)
        if who.id == caller.operator:
            return who.id
        if who.revoked_at is not None:
            raise refused(f"{who.name} was revoked", "choose another operator")
        if who.kind == "human":
            raise refused(f"nobody else's session acts as {who.name}, a human", "run it as an agent or a service")
        if not caller.may("delegate", None):
            raise refused(f"{caller.name} may not start sessions as {who.name}", "that takes `delegate` on *")
        return who.id

    def _authors(self, named: object) -> list[str]:
        """Agents and services whose words a session is started to run: it acts no wider than they. A name that is not
        enrolled here comes from a store that others write as well, and says nothing that could be checked."""
        if named is None:
            return []
        most = limits.OPERATORS_MAX
        if not isinstance(named, list) or len(named) > most or not all(isinstance(n, str) for n in named):
            raise invalid(f"authors are a list of at most {most} operators", "leave them out")
        known = [o for o in self.operators.by_id.values() if o.kind != "human" and (o.name in named or o.id in named)]
        return [o.id for o in known]

    async def op_started(self, request: Json, caller: Caller) -> list[Json]:
        """The sessions that a request started, or one derived from it (`REQUEST-…`): by what asked for them, which
        never changes hands as a name does. With `like`, a start, whether each was started just so (`same`). One that
        may not be seen is `hidden`, if its request is named exactly: whoever knows that knows there is one."""
        wanted, like = str(request.get("started") or ""), request.get("like")
        authors = self._authors(like.get("written_by")) if isinstance(like, dict) else []
        rows: list[Json] = []
        for s in list(self.registry.sessions.values()) if wanted else ():
            asked = str(s.manifest.get("request"))
            if not f"{asked}-".startswith(f"{wanted}-"):
                continue
            if not caller.may("view", s):
                rows += [{"request": asked, "hidden": True}] if asked == wanted else []
                continue
            by = s.manifest["started_by"]
            rows.append(
                {
                    "id": s.id,
                    "name": s.name,
                    "live": s.live,
                    "request": asked,
                    "hidden": False,
                    "started_by": self.operators.by_id[by].actor
                    if by in self.operators.by_id
                    else {"operator": by, "name": by, "kind": None},
                    "command": s.manifest["command"],
                    "cwd": s.manifest["cwd"],
                    "created_at": rfc3339(s.manifest["created_at"]),
                    # What it was given to run in may be secret: nobody learns of it here who could not start it again.
                    "same": isinstance(like, dict)
                    and caller.may("start", s)
                    and manifest.alike(s.manifest, like, authors),
                }
            )
        return rows

    async def op_down(self, request: Json, caller: Caller) -> Json:
        if request.get("all"):
            every = [s.id for s in self.registry.sessions.values() if s.live or restarting(s)]
            stops = (self.op_stop({"session": one, "grace_s": request.get("grace_s")}, caller) for one in every)
            await asyncio.gather(*stops)
        try:
            ending = bool(request.get("all")) or None
            self.journal.note("down", session=None, actor=caller.actor, why=why_of(request), all=ending)
            await self.journal.written()
        except HoldfastError as e:  # a host whose disk is full can be stopped all the same
            log.error("that the host was stopped is not noted: %s", e.line())
        asyncio.get_running_loop().call_soon(self.daemon.stopped.set)
        return {"host": self.daemon.about()}

    async def op_stop(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        if session.link is None and not session.live and await self._stopped_by(session, request, caller):
            return {**await self._view(session, full=False), "applied": True, "repeated": True}
        self.policies.cancel_restart(session)
        session.remember(stopped=True)
        grace = _grace(request)
        if session.link is None and session.unresponsive:
            await self.registry.connect(session)
        if session.link is None and (session.coming or handed.setting_up(session)):
            self._note("stop", session, caller, request)
            await late_start.call_off(session)
        elif session.link is None:
            self._note("stop", session, caller, request, survivors=True)
            await survivors.end(session, grace)
        else:
            self._note_unless_kept("stop", session, caller, request, grace_s=grace)
            await self._stop(session, caller, grace, request)
        await self.journal.written()
        return {
            **await self._view(session, full=False),
            "applied": True,
            "repeated": request.get("asked_s_ago") is not None,
        }

    @staticmethod
    async def _stopped_by(session: Session, request: Json, caller: Caller) -> bool:
        """Whether this very request ended it, for a host that died since. Asking twice to end something is harmless."""
        try:
            return await repeated_requests.carried_out(session, caller, request)
        except HoldfastError:
            return False

    async def _stop(self, session: Session, caller: Caller, grace_s: float, request: Json) -> None:
        session.remember(stopped=True)
        if session.link is None:
            return
        named = {"as": caller.actor, "request": repeated_requests.name_of(request)}
        try:
            await session.link.act("stop", grace_s=grace_s, why=why_of(request), **named)
        except HoldfastError:
            if session.live:
                raise  # else it ended by itself just now, which is what was wanted
        try:
            async with asyncio.timeout(grace_s + _STOP_EXTRA_S):
                while session.live:
                    await session.changed.wait()
        except TimeoutError:
            raise HoldfastError(
                "timeout", f"{session.name} did not end", f"hold ps {session.name} shows what is left"
            ) from None

    async def op_restart(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        if session.live:
            caller.require("stop", session)
        await self._approve_restart(session, request, caller)
        self.policies.cancel_restart(session)
        if session.live:
            session = await self._live(request, caller)
            self._note_unless_kept("stop", session, caller, request, grace_s=_grace(request))
            await self._stop(session, caller, _grace(request), request)
        elif session.state == "lost":
            await survivors.end(session, limits.STOP_GRACE_S)
        await asyncio.shield(self._start_again(session, caller, request))
        await self.journal.written()
        return await self._view(session, full=False)

    async def _start_again(self, session: Session, caller: Caller, request: Json) -> None:
        late: HoldfastError | None = None
        try:
            await self.registry.restart(session, caller.actor)
        except HoldfastError as e:
            if not session.coming:
                raise
            late = e
        session.remember(failures=0)
        self._note("restart", session, caller, request, command=words(session))
        if late is not None:
            raise late

    async def op_rm(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        self.registry.check_ended(session)
        self.policies.cancel_restart(session)
        await self._remove(session, request, caller)
        return {"removed": session.id, "name": session.name}

    async def _remove(self, session: Session, request: Json, caller: Caller) -> None:
        """The entry before the effect: who dies in between has said what it meant to do, and it can be done again."""
        self.screens.forget(session.id)
        await self.daemon.ingest.fetch(session)  # what it still has to tell goes before it does
        self._note("remove", session, caller, request)
        await self.journal.written()
        self.registry.remove(session)
        self.daemon.ingest.forget(session)

    async def op_rename(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        before, name = session.name, str(request.get("name") or "")
        actor, *others = self._ruled(caller)
        self.desk.gate.check_rename(actor, before, name, others)
        self._check_no_wider(session, name, caller)
        self.registry.check_rename(session, name)
        self.journal.note(
            "rename",
            session=session.id,
            actor=caller.actor,
            why=why_of(request),
            generation=session.manifest["generation"],
            session_name=name,
            before=before,
        )
        await self.journal.written()
        self.registry.rename(session, name)
        return {"id": session.id, "name": session.name}

    def _check_no_wider(self, session: Session, name: str, caller: Caller) -> None:
        """Grants go by names: nobody gives a session one under which they may do more to it."""
        now, scope = time.time(), scope_of(session)
        renamed = Scope(scope.id, name, scope.started_by, scope.acts_as)
        for who in caller.everyone:
            gained = self.operators.rights(who, renamed, now)[0] - self.operators.rights(who, scope, now)[0]
            if gained:
                words = f"under that name {caller.name} could {', '.join(sorted(gained))} in {session.name}"
                raise refused(words, "ask who gave the grant to rename it")

    async def op_prune(self, request: Json, caller: Caller) -> Json:
        """Remove ended sessions that are older than asked for."""
        older = number(request.get("older_than_s"), "an age") or 0.0
        removed = []
        for session in list(self.registry.sessions.values()):
            at = session.ended_at or (session.exit or {}).get("at") or session.manifest["started_at"]
            if session.live or restarting(session) or time.time() - at < older:
                continue
            if not (caller.may("view", session) and caller.may("stop", session)):
                continue
            if session.state == "lost" and session_view.survivors_of(session):
                continue
            await self._remove(session, request, caller)
            removed.append({"id": session.id, "name": session.name})
        return {"removed": removed}


def _grace(request: Json) -> float:
    asked = number(request.get("grace_s"), "a time to end in")
    return limits.STOP_GRACE_S if asked is None else float(asked)
