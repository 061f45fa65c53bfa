"""All sessions of this host, by id and by name: found on disk, named, removed."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Callable
from typing import Any

from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.home import Home, SessionFolder
from ...system import cgroup
from ...system.atomic_files import read_json, write_json
from . import late_start
from . import manifest as recipe
from .connect import Lines
from .session import Session, ended_how, keeper_alive
from .start import Starts
from .state import Event, State
from .zygote import Zygote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..isolation.session_socket import Doors

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")


class Registry:
    """Sessions by id. `on_event(session, event)` hears of everything a keeper tells, and of its death; `note(id)` that
    something happened to one."""

    def __init__(
        self, home: Home, zygote: Zygote, on_event: Callable[[Session, Json], None], note: Callable[[str], None]
    ) -> None:
        self.home, self._zygote, self._note = home, zygote, note
        self.sessions: dict[str, Session] = {}
        self.lines = Lines(home, zygote, on_event)
        starts = Starts(self, self.lines, zygote)
        self.start, self.restart, self.connect = starts.start, starts.restart, self.lines.connect
        self.doors: Doors | None = None  # set by the daemon

    def find(self, wanted: str, visible: Callable[[Session], bool]) -> Session:
        """By name, id or the beginning of an id; what may not be seen does not exist."""
        exact = self.sessions.get(wanted)
        if exact is not None and visible(exact):
            return exact
        return self.sessions[ids.resolve(wanted, {s.id: s.name for s in self.sessions.values() if visible(s)})]

    def names(self, *, live: bool = False) -> set[str]:
        return {s.name for s in self.sessions.values() if s.live or not live}

    def add(self, folder: SessionFolder, manifest: Json) -> Session:
        session = Session(folder, manifest, self._note)
        self.sessions[session.id] = session
        return session

    # -- adopting --------------------------------------------------------------------------------------------

    async def adopt_all(self) -> None:
        """Find every session on disk, connect to the living keepers, and be truthful about the dead."""
        os.makedirs(self.home.sessions, mode=0o700, exist_ok=True)
        names = [n for n in os.listdir(self.home.sessions) if n.startswith("ses_")]
        gate = asyncio.Semaphore(64)  # connections opened at a time: far below any descriptor limit

        async def one(name: str) -> None:
            async with gate:
                await self._adopt(name)

        await asyncio.gather(*(one(n) for n in names))

    async def _adopt(self, name: str) -> None:
        folder = self.home.session(name)
        manifest = read_json(folder.manifest)
        if manifest is None or not recipe.is_manifest(manifest, name):
            log.warning("%s has no readable manifest: left alone", folder.path)
            return
        session = self.add(folder, manifest)
        # In this order: who takes a start has its lock before it looks like a keeper, and before it says it is one.
        awaited = late_start.unseen(session) and late_start.on_its_way(self.home.roles, self._zygote.pid)
        if keeper_alive(folder):
            self.lines.happened(session, Event.KEEPER_FOUND)
            await self.connect(session)
        else:
            self.lines.happened(session, Event.UNCLAIMED_START if awaited else ended_how(session))

    # -- names and removal -----------------------------------------------------------------------------------

    def claim_name(self, name: str) -> None:
        """A live session keeps its name; an ended one of that name makes way under its id."""
        for session in self.sessions.values():
            if session.name != name:
                continue
            if session.live:
                raise HoldfastError(
                    "conflict",
                    f"a session named {name!r} is running",
                    f"hold attach {name}, or choose another name",
                )
            self.rename(session, f"{name}.{session.id[4:10]}")

    def rename(self, session: Session, name: str) -> None:
        self.check_rename(session, name)
        session.manifest["name"] = name
        write_json(session.folder.manifest, session.manifest)
        session.touch()
        self.lines.on_event(session, {"event": "renamed"})

    def check_rename(self, session: Session, name: str) -> None:
        ids.check_name(name)
        if any(s.name == name and s is not session for s in self.sessions.values()):
            raise HoldfastError("conflict", f"there is a session named {name!r} already", "choose another name")

    @staticmethod
    def check_ended(session: Session) -> None:
        if session.live:
            raise invalid(f"{session.name} is running", f"hold stop {session.name} first")

    def remove(self, session: Session) -> None:
        self.check_ended(session)
        lost = session.life is State.LOST
        self.lines.happened(session, Event.REMOVE_ASKED)
        self.sessions.pop(session.id, None)
        shutil.rmtree(session.folder.path, ignore_errors=True)
        if lost:  # no keeper saw its last process end
            self.lines.beside(cgroup.remove, cgroup.possible_leaves(session.id))
        session.touch()
        self.lines.on_event(session, {"event": "removed"})

    def close(self) -> None:
        self.lines.close()
