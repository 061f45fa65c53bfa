"""Operations on a session's life: start, stop, restart, rename, remove; and the host's own end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ...api.host import Down
from ...api.operation import Operation
from ...api.sessions import Prune, Remove, Rename, RestartSession, Run, Started, Stop
from ...model import limits
from ...model.errors import HoldfastError
from ...model.names import refused
from ...model.operators.grants import Scope
from ...model.times import rfc3339
from .. import repeated_requests
from ..inbox.approval_gate import Gate
from ..inbox.approval_requests import Approvals
from ..journal.journal import Journal
from ..journal.missed_entries import words
from ..journal.session_entries import note, note_unless_kept, why_of
from ..journal.spool_ingest import Ingest
from ..observe import session_view
from ..observe.look import Look, restarting
from ..operators.caller import Caller, scope_of
from ..operators.operators import Operators
from ..screen.emulators import Screens
from . import find, jupyter_kernel, late_start, manifest, survivors
from .registry import Registry
from .restart_policy import Policies
from .session import Session
from .state import State

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_STOP_EXTRA_S = 15.0  # past the grace time, for KILL to empty a large tree


class SessionParts(NamedTuple):
    """What the handlers here use of the host; `leave` ends the host, `about` is what it says of itself."""

    registry: Registry
    look: Look
    screens: Screens
    policies: Policies
    operators: Operators
    approvals: Approvals
    gate: Gate
    journal: Journal
    ingest: Ingest
    about: Callable[[], Json]
    before_down: Callable[[str, bool], Awaitable[list[str]]]
    leave: Callable[[], None]


@Run.answered
async def run(parts: SessionParts, caller: Caller, request: Run) -> Json:
    wanted = await jupyter_kernel.resolved(dict(vars(request)))
    if wanted.get("acts_as"):
        wanted["acts_as"] = _acts_as(parts.operators, wanted["acts_as"], caller)
    await parts.approvals.to_run(wanted, request, caller)
    session = await asyncio.shield(_start(parts, wanted, request, caller))  # who leaves meanwhile leaves an entry too
    brief = {"id": session.id, "name": session.name, "unenforced": session.manifest.get("unenforced") or []}
    answer = brief if request.brief else await parts.look.view(session, full=True)
    if parts.journal.failing:  # else it need not be waited for: a durable manifest owes its entry to any host to come
        await parts.journal.written()
    return answer


async def _start(parts: SessionParts, wanted: Json, request: Run, caller: Caller) -> Session:
    unnoted: list[HoldfastError] = []

    def begun(session: Session) -> None:
        try:
            note(
                parts.journal,
                "start",
                session,
                caller,
                request,
                command=words(session),
                cwd=session.manifest["cwd"],
                acts_as=session.manifest["acts_as"],
                owed=True,
            )
        except HoldfastError as e:  # its program runs: the session stays, and the caller hears of the journal
            unnoted.append(e)

    bound = (*caller.bound_by, *_authors(parts.operators, request.written_by))
    session = await parts.registry.start(wanted, caller.actor, bound, begun)
    if unnoted:
        raise unnoted[0]
    return session


def _acts_as(operators: Operators, wanted: str, caller: Caller) -> str:
    """The operator a new session acts as: the caller, or one whose rights the caller may give away."""
    who = operators.find(wanted)
    if who.id == caller.operator:
        return who.id
    if who.revoked_at is not None:
        raise refused(f"{who.name} was revoked", "choose another operator")
    if who.kind == "human":
        raise refused(f"nobody else's session acts as {who.name}, a human", "run it as an agent or a service")
    if not caller.may("delegate", None):
        raise refused(f"{caller.name} may not start sessions as {who.name}", "that takes `delegate` on *")
    return who.id


def _authors(operators: Operators, named: list[str] | None) -> list[str]:
    """Agents and services whose words a session is started to run: it acts no wider than they. A name that is not
    enrolled here comes from a store that others write as well, and says nothing that could be checked."""
    wanted = named or ()
    known = [o for o in operators.by_id.values() if o.kind != "human" and (o.name in wanted or o.id in wanted)]
    return [o.id for o in known]


@Started.answered
async def started(parts: SessionParts, caller: Caller, request: Started) -> list[Json]:
    """The sessions that a request started, or one derived from it (`REQUEST-…`): by what asked for them, which never
    changes hands as a name does. With `like`, a start, whether each was started just so (`same`). One that may not be
    seen is `hidden`, if its request is named exactly: a caller that knows that knows there is one."""
    wanted, like = request.started, request.like
    authors = _authors(parts.operators, like.get("written_by")) if like else []
    known = parts.operators.by_id
    rows: list[Json] = []
    for s in list(parts.registry.sessions.values()) if wanted else ():
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
                "started_by": known[by].actor if by in known else {"operator": by, "name": by, "kind": None},
                "command": s.manifest["command"],
                "cwd": s.manifest["cwd"],
                "created_at": rfc3339(s.manifest["created_at"]),
                # What it was given to run in may be secret: no caller learns of it here that could not start it again.
                "same": bool(like) and caller.may("start", s) and manifest.alike(s.manifest, like or {}, authors),
            }
        )
    return rows


@Down.answered
async def down(parts: SessionParts, caller: Caller, request: Down) -> Json:
    if request.all:
        every = [s.id for s in parts.registry.sessions.values() if s.live or restarting(s)]
        stops = (stop(parts, caller, Stop(session=one, grace_s=request.grace_s)) for one in every)
        await asyncio.gather(*stops)
    held = await parts.before_down(caller.name, request.stay)
    try:
        ending = request.all or None
        parts.journal.note("down", session=None, actor=caller.actor, why=why_of(request), all=ending)
        await parts.journal.written()
    except HoldfastError as e:  # a host whose disk is full can be stopped all the same
        log.error("that the host was stopped is not noted: %s", e.line())
    asyncio.get_running_loop().call_soon(parts.leave)
    return {"host": parts.about(), "held": held}


@Stop.answered
async def stop(parts: SessionParts, caller: Caller, request: Stop) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    if not session.live and await _stopped_by(session, request, caller):
        return {**await parts.look.view(session, full=False), "applied": True, "repeated": True}
    parts.policies.cancel_restart(session)
    session.remember(stopped=True)
    grace = _grace(request.grace_s)
    if session.unreachable:
        await parts.registry.connect(session)
    if not session.connected and (session.life is State.START_LATE or late_start.setting_up(session)):
        note(parts.journal, "stop", session, caller, request)
        await late_start.call_off(session)
    elif not session.connected:
        note(parts.journal, "stop", session, caller, request, survivors=True)
        await survivors.end(session, grace)
    else:
        note_unless_kept(parts.journal, "stop", session, caller, request, grace_s=grace)
        await _stop(session, caller, grace, request)
    await parts.journal.written()
    repeated = request.asked_s_ago is not None
    return {**await parts.look.view(session, full=False), "applied": True, "repeated": repeated}


async def _stopped_by(session: Session, request: Stop, caller: Caller) -> bool:
    """Whether this very request ended it, for a host that died since. Asking twice to end something is harmless."""
    try:
        return await repeated_requests.carried_out(session, caller, request)
    except HoldfastError:
        return False


async def _stop(session: Session, caller: Caller, grace_s: float, request: Operation[Any]) -> None:
    session.remember(stopped=True)
    if not session.connected:
        return
    named = {"as": caller.actor, "request": repeated_requests.name_of(request)}
    try:
        await session.line.act("stop", grace_s=grace_s, why=why_of(request), **named)
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


@RestartSession.answered
async def restart(parts: SessionParts, caller: Caller, request: RestartSession) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    if session.live:
        caller.require("stop", session)
    await parts.approvals.to_restart(session, request, caller)
    parts.policies.cancel_restart(session)
    if session.live:
        session, grace = await find.live(parts.registry, request.session, caller), _grace(request.grace_s)
        note_unless_kept(parts.journal, "stop", session, caller, request, grace_s=grace)
        await _stop(session, caller, grace, request)
    elif session.state == "lost":
        await survivors.end(session, limits.STOP_GRACE_S)
    await asyncio.shield(_start_again(parts, session, caller, request))
    await parts.journal.written()
    return await parts.look.view(session, full=False)


async def _start_again(parts: SessionParts, session: Session, caller: Caller, request: RestartSession) -> None:
    late: HoldfastError | None = None
    try:
        await parts.registry.restart(session, caller.actor)
    except HoldfastError as e:
        if session.life is not State.START_LATE:
            raise
        late = e
    session.remember(failures=0)
    note(parts.journal, "restart", session, caller, request, command=words(session))
    if late is not None:
        raise late


@Remove.answered
async def remove(parts: SessionParts, caller: Caller, request: Remove) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    parts.registry.check_ended(session)
    parts.policies.cancel_restart(session)
    await _remove(parts, session, request, caller)
    return {"removed": session.id, "name": session.name}


async def _remove(parts: SessionParts, session: Session, request: Operation[Any], caller: Caller) -> None:
    """The entry before the effect: a host that dies in between has said what it meant, and it can be done again."""
    parts.screens.forget(session.id)
    await parts.ingest.fetch(session)  # what it still has to tell goes before it does
    note(parts.journal, "remove", session, caller, request)
    await parts.journal.written()
    parts.registry.remove(session)
    parts.ingest.forget(session)


@Rename.answered
async def rename(parts: SessionParts, caller: Caller, request: Rename) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    before, name = session.name, request.name
    actor, *others = caller.ruled
    parts.gate.check_rename(actor, before, name, others)
    _check_no_wider(parts.operators, session, name, caller)
    parts.registry.check_rename(session, name)
    parts.journal.note(
        "rename",
        session=session.id,
        actor=caller.actor,
        why=why_of(request),
        generation=session.manifest["generation"],
        session_name=name,
        before=before,
    )
    await parts.journal.written()
    parts.registry.rename(session, name)
    return {"id": session.id, "name": session.name}


def _check_no_wider(operators: Operators, session: Session, name: str, caller: Caller) -> None:
    """Grants go by names: no caller gives a session one under which it may do more to it."""
    now, scope = time.time(), scope_of(session)
    renamed = Scope(scope.id, name, scope.started_by, scope.acts_as)
    for who in caller.everyone:
        gained = operators.rights(who, renamed, now)[0] - operators.rights(who, scope, now)[0]
        if gained:
            could = f"under that name {caller.name} could {', '.join(sorted(gained))} in {session.name}"
            raise refused(could, "ask who gave the grant to rename it")


@Prune.answered
async def prune(parts: SessionParts, caller: Caller, request: Prune) -> Json:
    removed = []
    for session in list(parts.registry.sessions.values()):
        at = session.ended_at or (session.exit or {}).get("at") or session.manifest["started_at"]
        if session.live or restarting(session) or time.time() - at < request.older_than_s:
            continue
        if not (caller.may("view", session) and caller.may("stop", session)):
            continue
        if session.state == "lost" and session_view.survivors_of(session):
            continue
        await _remove(parts, session, request, caller)
        removed.append({"id": session.id, "name": session.name})
    return {"removed": removed}


def _grace(asked: float | None) -> float:
    return limits.STOP_GRACE_S if asked is None else asked
