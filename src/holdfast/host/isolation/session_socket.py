"""Doors: for each isolated session one socket of its own, and what may be asked through it.

A request that comes through a door is the session's `acts_as`, whatever it says of itself, and reaches that session and
those that were started through the same door. For it no other session exists. Names, folders, limits and network of
what it starts are never wider than its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any

from ...api import checking
from ...api.channels import Attach
from ...api.operation import Operation, find
from ...api.sessions import Run
from ...model import limits
from ...model.errors import HoldfastError
from ...model.names import refused
from ...model.sessions import isolation
from ...model.sessions.isolation import View
from ..journal.refusals import Refusals
from ..operators.caller import Caller, Identities, unresolved
from ..server.connection import Peer, Reply, Server, listen
from ..server.read_budget import Reading
from ..sessions import manifest
from ..sessions.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..sessions.registry import Registry

Json = dict[str, Any]
Dispatch = Callable[[Operation[Any], Caller], Awaitable[Reply]]
log = logging.getLogger("holdfast.host")

_OWN_VERBS = frozenset({"view", "type", "resize", "exec", "request_control"})
_CHILD_VERBS = _OWN_VERBS | {"signal", "stop", "start"}


class DoorCaller(Caller):
    """`acts_as`, seen through the door: its rights, and of those only the ones that are for inside."""

    def __init__(self, inner: Caller, own: Session) -> None:
        super().__init__(inner.actor, inner.operators, own, inner.bound_by, inner.line)
        self._own, self.peer = own, inner.peer

    @property
    def kept(self) -> Json:
        return {**super().kept, "door": self._own.id}

    def _verbs(self, session: Session | None) -> frozenset[str]:
        if session is None:
            return frozenset()
        return _OWN_VERBS if session is self._own else _CHILD_VERBS if is_child(session, self._own) else frozenset()

    def may(self, verb: str, session: Session | None) -> bool:
        return verb in self._verbs(session) and super().may(verb, session)

    def reaches(self, session: Session | None) -> bool:
        return bool(self._verbs(session))

    def rights(self, session: Session) -> tuple[list[str], list[str], float | None]:
        verbs, used, until = super().rights(session)
        return [verb for verb in verbs if verb in self._verbs(session)], used, until


def is_child(session: Session, own: Session) -> bool:
    return bool(session.manifest.get("door") == own.id)


class Door:
    """One session's socket and what comes through it."""

    def __init__(self, session: Session, doors: Doors) -> None:
        self._session, self._doors = session, doors
        listening = listen(session.folder.door_socket)
        most = limits.DOOR_CONNECTIONS_MAX
        uid = session.manifest["wrap"].get("uid")
        self._server = Server(listening, self.handle, self._foreign, session, most, uid, doors.reading)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve())

    def _foreign(self, peer: Peer) -> None:
        self._doors.refusals.note(
            "connect", "a peer of another uid", actor=None, session=self._session.id, pid=peer.pid, uid=peer.uid
        )

    async def handle(self, message: Json, peer: Peer) -> Reply:
        op = str(message.get("op"))
        try:
            caller = DoorCaller(await self._doors.identities.caller(peer), self._session)
        except HoldfastError as e:
            self._doors.refusals.note(op, actor=None, session=self._session.id, **unresolved(peer, e))
            raise
        try:
            asked = self._narrowed(op, message)
        except HoldfastError as e:
            if e.code == "not_allowed":
                self._doors.refusals.note(op, e.message, actor=caller.actor, session=self._session.id, via="door")
            raise
        return await self._doors.dispatch(asked, caller)

    def _narrowed(self, op: str, message: Json) -> Operation[Any]:
        """The request as it goes on; the host then asks the caller's rights, as of each caller."""
        kind = find(op)
        if kind is None or not kind.row.isolated:
            raise refused(f"an isolated program may not ask for {op[:40]!a}", "ask from outside")
        if "session" in kind.fields and not message.get("session") and op != "status":  # which shows all without one
            message = {**message, "session": self._session.id}
        asked = checking.request(message)
        if isinstance(asked, Run):
            return Run(**self._start(vars(asked)))
        if isinstance(asked, Attach):
            return Attach(**{**vars(asked), "env": None})  # a terminal's agent and display stay outside
        return asked

    def _visible(self) -> list[Session]:
        every = self._doors.registry.sessions.values()
        return [s for s in every if s is self._session or is_child(s, self._session)]

    def _start(self, asked: Json) -> Json:
        """A start from inside: isolated as this session is, or more; as the same operator; within its limits."""
        own = self._session.manifest
        if sum(s.live for s in self._visible()) > limits.DOOR_CHILDREN_MAX:
            raise HoldfastError("conflict", f"it has {limits.DOOR_CHILDREN_MAX} running already", "stop some first")
        if asked.get("acts_as") not in (None, own["acts_as"]):
            raise refused("an isolated program starts only as its own operator", "leave --as out")
        wished: Json = asked.get("isolate") or {}
        cwd = os.path.normpath(str(asked.get("cwd") or own["isolation"]["cwd"]))
        view = isolation.narrowed(
            isolation.from_dict(own["isolation"]),
            View(cwd, _texts(wished.get("read")), _texts(wished.get("write")), wished.get("network") is not False),
        )
        return {
            **asked,
            "isolation": view.as_dict(),
            "door": self._session.id,
            "cwd": cwd,
            "acts_as": own["acts_as"],
            "name": self._free(asked.get("name")),
            "rlimits": own["rlimits"],
            "limits": _least(asked.get("limits"), own),
        }

    def _free(self, name: str | None) -> str | None:
        """A name that somebody else's session has is not taken from it, and not told either."""
        seen = {s.id for s in self._visible()}
        others = {s.name for s in self._doors.registry.sessions.values() if s.id not in seen}
        n = 2
        wanted = name
        while wanted in others:
            wanted = f"{str(name)[: limits.NAME_MAX - 8]}-{n}"
            n += 1
        return wanted

    def close(self) -> None:
        self._serving.cancel()
        self._server.close()
        with contextlib.suppress(OSError):
            os.unlink(self._session.folder.door_socket)


class Doors:
    """All doors that stand open: from before a program starts until its session has ended."""

    def __init__(
        self, registry: Registry, identities: Identities, refusals: Refusals, dispatch: Dispatch, reading: Reading
    ) -> None:
        self.registry, self.identities, self.refusals, self.dispatch = registry, identities, refusals, dispatch
        self.reading = reading
        self._open: dict[str, Door] = {}

    def open(self, session: Session) -> None:
        if session.isolated and session.id not in self._open:
            self._open[session.id] = Door(session, self)

    def heard(self, session: Session, event: Json) -> None:
        if event.get("event") == "gone":
            self.shut(session)
        elif event.get("event") == "linked":  # adopted: the last host's socket has nobody behind it
            try:
                self.open(session)
            except OSError as e:
                log.error("no door for %s: %s", session.name, e)

    def shut(self, session: Session) -> None:
        door = self._open.pop(session.id, None)
        if door is not None:
            door.close()

    def close(self) -> None:
        for door in self._open.values():
            door.close()
        self._open.clear()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(os.path.normpath(v) for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _least(asked: object, own: Json) -> Json:
    """Limits of a child: its own wishes, and no more than this session has."""
    wished = manifest.check_limits(asked)
    most = {"pids": own["limits"]["pids"], "memory": own["limits"]["memory"], "log": own["retain_bytes"]}
    return {key: min(wished[key] or bound, bound) if bound else wished[key] for key, bound in most.items()}
