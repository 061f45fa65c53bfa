"""Who is calling: from a socket's peer to an operator with its rights, and the session it calls from.

peer of this uid ── inside a session ──> the session's acts_as, bound by everyone who had hands on it
                 ├─ key proven ────────> that operator
                 └─ else ──────────────> the OS user, the first human
anything that cannot be resolved ──────> refused
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...api.operation import Operation
from ...model import limits
from ...model.errors import HoldfastError
from ...model.home import Home
from ...model.names import refused
from ...model.operators.grants import Scope
from ...system import peer_identity
from ...system.atomic_files import read_json
from ...system.process_tree import Stat
from ..server.connection import Peer
from ..sessions.registry import Registry
from ..sessions.session import Session
from .operators import Operators

Json = dict[str, Any]

_KEEPER_TOLD_S = 5.0  # a program can call before its keeper has told the host who it is
_OUTSIDE = ("hold-host", "hold-web")  # roles that keep no session: what they started stands in none


class Caller:
    """One request's operator: what it is called, where it calls from, and what it may do at this moment."""

    approved: str | None = None  # the item by which a person allowed this very request; only the host sets it

    def __init__(
        self,
        actor: Json,
        operators: Operators,
        session: Session | None = None,
        bound_by: tuple[str, ...] = (),
        line: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.actor, self.session, self.bound_by = actor, session, bound_by
        self.operators, self.line = operators, line
        self.peer: Peer | None = None  # its connection, where it has one of its own to this host

    @property
    def operator(self) -> str:
        return str(self.actor["operator"])

    @property
    def everyone(self) -> tuple[str, ...]:
        """Whoever may be behind this request: what it touches is in all their hands."""
        return (self.operator, *self.bound_by)

    @property
    def ruled(self) -> list[Json]:
        """Whose rules count, all of them: any agent that had its hands on a person's shell may be who calls from it."""
        known = (self.operators.by_id.get(other) for other in self.everyone)
        agents = [who.actor for who in known if who is not None and who.kind != "human"]
        return agents or [self.actor]

    @property
    def is_person(self) -> bool:
        """Whether a person calls, and no agent can be behind it."""
        return bool(self.ruled[0]["kind"] == "human")

    def require_person(self, what: str) -> None:
        """Raise unless a person calls, from outside of every session."""
        if self.session is not None or not self.is_person:
            raise refused(f"{what} is for a person to say, outside of any session", "ask one")

    def holding(self, request: Operation[Any]) -> Json:
        """The operator as a keeper gets it for what lasts: with the process whose end ends it, where one is known. The
        client says which of its parents it acts for (`ancestor`, 0 for itself); who that is, the kernel said."""
        acting, process = self.acting(request), self._named(request)
        if self.kind == "human" or process is None:
            return acting
        return {**acting, "process": {"pid": process[0], "started": process[1]}}

    def acting(self, request: Operation[Any]) -> Json:
        """The operator with the client process that acts for it (`actor`): its pid and start time."""
        process = self._named(request) or next(iter(self.line), None)
        return self.actor if process is None else {**self.actor, "actor": f"{process[0]}.{process[1]}"}

    def _named(self, request: Operation[Any]) -> tuple[int, int] | None:
        nth: int | None = getattr(request, "ancestor", None)
        return self.line[nth] if nth is not None and nth < len(self.line) else None

    @property
    def kind(self) -> str:
        return str(self.actor["kind"])

    @property
    def name(self) -> str:
        return str(self.actor["name"])

    def may(self, verb: str, session: Session | None) -> bool:
        """Whether it may do this to a session; None is the host itself, which takes a grant on `*`."""
        return self.may_in(verb, None if session is None else scope_of(session))

    def may_in(self, verb: str, scope: Scope | None) -> bool:
        now = time.time()
        return all(self.operators.allows(who, verb, scope, now) for who in self.everyone)

    def require(self, verb: str, session: Session | None) -> None:
        """Raise unless it may; whoever serves the request journals the refusal."""
        if not self.may(verb, session):
            where = f"in {session.name}" if session is not None else "on this host"
            raise refused(f"{self.name} may not {verb} {where}", "hold operator whoami shows what you may do")

    @property
    def kept(self) -> Json:
        """What to know this caller by when its request is carried out later."""
        inside = self.session.id if self.session is not None else None
        return {"operator": self.operator, "inside": inside, "bound_by": list(self.bound_by)}

    def reaches(self, session: Session | None) -> bool:
        """Whether what concerns this session (None: none that is) is within sight from where the caller stands."""
        return True

    def until(self, scope: Scope) -> float | None:
        """When the first of the grants that count here ends."""
        now = time.time()
        ends = (self.operators.rights(who, scope, now)[2] for who in self.everyone)
        return min((t for t in ends if t is not None), default=None)

    def next_end(self) -> float | None:
        """When the next of the grants that it acts by runs out, whatever it is about."""
        now = time.time()
        links = (link for who in self.everyone for chain in self.operators.chains(who) for link in chain)
        return min((link.until for link in links if link.until is not None and link.until > now), default=None)

    def rights(self, session: Session) -> tuple[list[str], list[str], float | None]:
        """For a channel: verbs in force, the grants behind them, and when the first of those ends."""
        now, scope = time.time(), scope_of(session)
        verbs, used, until = self.operators.rights(self.operator, scope, now)
        for other in self.bound_by:
            theirs, more, ends = self.operators.rights(other, scope, now)
            verbs &= theirs
            used += more
            until = min((t for t in (until, ends) if t is not None), default=None)
        used = sorted(set(used))
        if len(used) > 2 * limits.GRANTS_HELD_MAX:
            raise refused("more grants meet in this session than a channel can name", "start a new session")
        return sorted(verbs), used, until


class Identities:
    """Resolves peers. What it finds out about a connection holds for that connection; rights are asked each time."""

    def __init__(self, home: Home, registry: Registry, operators: Operators, zygote: Callable[[], int | None]) -> None:
        self._home, self._registry, self._operators, self._zygote = home, registry, operators, zygote

    async def caller(self, peer: Peer) -> Caller:
        """The operator behind this connection; raises not_allowed where there is none to be found."""
        if not peer.resolved:
            peer.inside = await self._inside(peer)
            if peer.door is not None and peer.inside is not peer.door:
                raise refused(f"this socket is for programs inside {peer.door.name}", "use the host's own")
            peer.resolved = True
        return self.known(peer)

    def known(self, peer: Peer) -> Caller:
        """The operator behind a connection that was resolved before, as of now."""
        caller = self._known(peer)
        caller.peer = peer
        return caller

    def _known(self, peer: Peer) -> Caller:
        session = peer.inside
        if session is None:
            return self._as(peer.proven or self._operators.first, None, (), peer.line)
        me, bound = str(session.manifest["acts_as"]), list(session.hands)
        who = self._operators.by_id.get(me)
        if peer.proven and peer.proven != me and who is not None and who.kind == "human":
            # A person's own shell may speak for one of their agents; it gains nothing that the person does not have.
            bound.append(me)
            me = peer.proven
        return self._as(me, session, tuple(b for b in dict.fromkeys(bound) if b != me), peer.line)

    def worker(self, peer: Peer) -> str | None:
        """The name of a connection's operator where it may do durable work; None: `caller` says why not. For a thread
        that answers one step after the other."""
        try:
            if peer.inside is None:
                return self._operators.worker(peer.proven or self._operators.first, time.time())
            caller = self.known(peer)
            allowed = caller.may_in("work", Scope("", "", caller.operator, caller.operator))
        except (HoldfastError, RuntimeError):  # refused; or the loop changed the grants while they were looked at
            return None
        return caller.name if allowed else None

    def again(self, kept: Json) -> Caller:
        """Who made a request that was kept (`Caller.kept`), as of now; refused where that operator is gone."""
        session = self._registry.sessions.get(kept["inside"]) if kept["inside"] else None
        if kept["inside"] and session is None:
            raise refused("the session that asked for this was removed", "ask again")
        return self._as(str(kept["operator"]), session, tuple(kept["bound_by"]), [])

    def _as(
        self, operator: str, session: Session | None, bound: tuple[str, ...], processes: list[tuple[int, int]]
    ) -> Caller:
        who = self._operators.by_id.get(operator)
        if who is None:
            raise refused(f"{operator[:40]!a} is not enrolled here", "hold operator ls")
        if who.revoked_at is not None:
            raise refused(f"{who.name} was revoked", "ask who enrolled it")
        return Caller(who.actor, self._operators, session, bound, processes)

    # -- where a process stands

    async def _inside(self, peer: Peer) -> Session | None:
        deadline = asyncio.get_running_loop().time() + _KEEPER_TOLD_S
        while True:
            try:
                line = peer_identity.ancestry(peer.sock)
            except peer_identity.Unknown as e:
                words = f"the calling process cannot be identified: {e}"
                raise refused(words, "call from a process that stays") from None
            role = next((one for one in line if self._is_role(one)), None)
            mine = line if role is None else line[: line.index(role)]
            peer.line = [(one.pid, one.started) for one in mine if one.pid > 1]
            if role is None or role.pid in (os.getpid(), self._zygote()) or role.comm in _OUTSIDE:
                return self._marked(peer)  # what the host itself started is in no session either
            found = self._kept_by(role.pid)
            if found is not None:
                return found
            try:
                async with asyncio.timeout_at(deadline):
                    await self._registry.lines.welcomed.wait()
            except TimeoutError:
                raise refused("the caller's session is not known to this host", "hold doctor") from None

    def _is_role(self, one: Stat) -> bool:
        return os.path.exists(os.path.join(self._home.roles, f"{one.pid}.{one.started}"))

    def _kept_by(self, pid: int) -> Session | None:
        sessions = self._registry.sessions.values()
        for session in sessions:
            if session.keeper == pid:
                return session
        for session in sessions:  # starting this moment, or not answering: its own record names the keeper
            if not session.connected and (read_json(session.folder.keeper_lock) or {}).get("pid") == pid:
                return session
        return None

    def _marked(self, peer: Peer) -> Session | None:
        """A process of a session whose keeper died still carries its mark. A mark only ever narrows."""
        marks = peer_identity.environment(peer.pid, (b"HOLDFAST_SESSION", b"HOLDFAST_HOME"))
        if marks.get(b"HOLDFAST_HOME") != os.fsencode(self._home.path):
            return None
        return self._registry.sessions.get(os.fsdecode(marks.get(b"HOLDFAST_SESSION", b"")))


def scope_of(session: Session) -> Scope:
    m = session.manifest
    return Scope(session.id, session.name, str(m["started_by"]), str(m["acts_as"]))


def unresolved(peer: Peer, e: HoldfastError) -> Json:
    """What can be said in the journal about one that could not be identified."""
    return {"reason": e.message, "pid": peer.pid, "uid": peer.uid}
