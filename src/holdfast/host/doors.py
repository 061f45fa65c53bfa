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
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..model import ids, isolation, limits
from ..model.errors import HoldfastError
from ..model.isolation import View
from .identity import Caller
from .server import Peer, Reply, Server, listen
from .session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .journal import Journal
    from .registry import Registry

Json = dict[str, Any]
Dispatch = Callable[[Json, Caller], Awaitable[Reply]]
log = logging.getLogger("holdfast.host")

_OWN_VERBS = frozenset({"view", "type", "resize", "exec", "request_control"})
_CHILD_VERBS = _OWN_VERBS | {"signal", "stop"}
# Operations that name a session. Everything that is in neither table does not exist behind a door.
_LOOKING = {"status", "screen", "offset", "recording", "keys", "wait", "exec_result", "open", "attach"}
_ON_OWN = _LOOKING | {"send", "resize", "exec", "take", "release", "ask"}
_ON_CHILD = _ON_OWN | {"kill", "stop", "restart", "rm"}
_LISTS = {"ls": "id", "ports": "session"}  # with the key that names each row's session
_PLAIN = {"ping", "run"}
_NOTE_EVERY_S = 1.0  # a program that asks for what it may not have fills no disk with refusals


class DoorCaller(Caller):
    """`acts_as`, seen through the door: its rights, and of those only the ones that are for inside."""

    def __init__(self, inner: Caller, session: Session) -> None:
        super().__init__(inner.actor, session)
        self._inner, self._own = inner, session

    def may(self, verb: str, session: Session | None) -> bool:
        if session is None:
            return verb in ("view", "start") and self._inner.may(verb, None)
        verbs = _OWN_VERBS if session is self._own else _CHILD_VERBS if is_child(session, self._own) else frozenset()
        return verb in verbs and self._inner.may(verb, session)


def is_child(session: Session, own: Session) -> bool:
    return bool(session.manifest.get("door") == own.id)


class Door:
    """One session's socket and what comes through it."""

    def __init__(self, session: Session, doors: Doors) -> None:
        self._session, self._doors = session, doors
        self._server = Server(listen(session.folder.door_socket), self.handle, limits.DOOR_CONNECTIONS_MAX)
        self._serving = asyncio.get_running_loop().create_task(self._server.serve())
        self._noted: dict[str, float] = {}

    async def handle(self, request: Json, peer: Peer) -> Reply:
        op = str(request.get("op"))
        caller = DoorCaller(self._doors.acting(self._session), self._session)
        try:
            return await self._admitted(op, request, caller)
        except HoldfastError as e:
            if e.code == "not_allowed":
                self._note(op, caller, e)
            raise

    async def _admitted(self, op: str, request: Json, caller: Caller) -> Reply:
        asked = {key: value for key, value in request.items() if key not in ("operator", "as", "isolation", "door")}
        if op in _LISTS or (op == "status" and not request.get("session")):
            return await self._listed(op, asked, caller)
        if op == "ping":
            return await self._doors.dispatch(asked, caller)
        if op == "run":
            return await self._doors.dispatch(self._start(asked, caller), caller)
        if op not in _ON_CHILD:
            raise HoldfastError("not_allowed", f"an isolated program may not ask for {op[:40]}", "ask from outside")
        seen = {s.id: s.name for s in self._visible()}
        target = self._doors.registry.sessions[ids.resolve(str(request.get("session") or self._session.id), seen)]
        if target is self._session and op not in _ON_OWN:
            raise HoldfastError("not_allowed", f"an isolated program may not {op} its session", "do it from outside")
        asked.pop("env", None)  # an attached terminal's agent and display stay outside
        return await self._doors.dispatch({**asked, "session": target.id}, caller)

    async def _listed(self, op: str, asked: Json, caller: Caller) -> Reply:
        """Lists with only those rows that exist for this door."""
        reply = await self._doors.dispatch(asked, caller)
        seen = {s.id for s in self._visible()}
        if op == "status":
            answer = reply.value["ok"]
            rows = [row for row in answer["sessions"] if row["id"] in seen]
            return Reply({"ok": {**answer, "sessions": rows}})
        return Reply({"ok": [row for row in reply.value["ok"] if row[_LISTS[op]] in seen]})

    def _visible(self) -> list[Session]:
        every = self._doors.registry.sessions.values()
        return [s for s in every if s is self._session or is_child(s, self._session)]

    def _start(self, asked: Json, caller: Caller) -> Json:
        """A start from inside: isolated as this session is, or more; as the same operator; within its limits."""
        caller.require("start", None)
        own = self._session.manifest
        if sum(s.live for s in self._visible()) > limits.DOOR_CHILDREN_MAX:
            raise HoldfastError("conflict", f"it has {limits.DOOR_CHILDREN_MAX} running already", "stop some first")
        if asked.get("acts_as") not in (None, own["acts_as"]):
            raise HoldfastError("not_allowed", "an isolated program starts only as its own operator", "leave --as out")
        wished = asked.get("isolate") if isinstance(asked.get("isolate"), dict) else {}
        assert isinstance(wished, dict)
        cwd = os.path.normpath(str(asked.get("cwd") or own["isolation"]["cwd"]))
        view = isolation.narrowed(
            isolation.from_dict(own["isolation"]),
            View(cwd, _texts(wished.get("read")), _texts(wished.get("write")), wished.get("network") is not False),
        )
        return {
            **asked, "isolation": view.as_dict(), "door": self._session.id, "cwd": cwd, "acts_as": own["acts_as"],
            "name": self._free(asked.get("name")), "rlimits": own["rlimits"],
            "limits": _least(asked.get("limits"), own),
        }  # fmt: skip

    def _free(self, name: object) -> object:
        """A name that somebody else's session has is not taken from it, and not told either."""
        seen = {s.id for s in self._visible()}
        others = {s.name for s in self._doors.registry.sessions.values() if s.id not in seen}
        n = 2
        wanted = name
        while wanted in others:
            wanted = f"{str(name)[: limits.NAME_MAX - 8]}-{n}"
            n += 1
        return wanted

    def _note(self, op: str, caller: Caller, error: HoldfastError) -> None:
        now = time.monotonic()
        kind = op if op in _ON_CHILD or op in _PLAIN or op in _LISTS else "other"
        if now - self._noted.get(kind, -_NOTE_EVERY_S) < _NOTE_EVERY_S:
            return
        self._noted[kind] = now
        self._doors.journal.note(
            "refuse", session=self._session.id, actor=caller.actor, why=error.message, op=op[:40], via="door"
        )

    def close(self) -> None:
        self._serving.cancel()
        self._server.close()
        with contextlib.suppress(OSError):
            os.unlink(self._session.folder.door_socket)


class Doors:
    """All doors that stand open: from before a program starts until its session has ended."""

    def __init__(
        self, registry: Registry, journal: Journal, dispatch: Dispatch, acting: Callable[[Session], Caller]
    ) -> None:
        self.registry, self.journal, self.dispatch, self.acting = registry, journal, dispatch, acting
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
    wished = asked if isinstance(asked, dict) else {}
    most = {"pids": own["limits"]["pids"], "memory": own["limits"]["memory"], "log": own["retain_bytes"]}
    return {key: min(int(wished.get(key) or bound), bound) if bound else wished.get(key) for key, bound in most.items()}
