"""Operations that look: nothing they do changes a session."""

from __future__ import annotations

import asyncio
from typing import Any

from ...model.errors import HoldfastError, invalid
from .. import doctor_checks
from ..base import Base, number, whole
from ..channels.recording import recording
from ..screen.last_line import last_line
from ..sessions.session import Session
from . import ports
from . import processes as proc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller

Json = dict[str, Any]

_VIEWS_AT_ONCE = 32  # keepers asked in parallel by `ls`
_BLOCKED = ("waiting_for_input", "waiting_for_secret", "menu", "at_prompt", "exited")


class Looking(Base):
    """ls, status, ports, screen, wait and their like."""

    async def op_ping(self, request: Json, caller: Caller) -> Json:
        return {"host": self.daemon.about(), "operator": caller.actor}

    async def op_ls(self, request: Json, caller: Caller) -> list[Json]:
        only = _ids(request.get("sessions"))
        chosen = [
            s
            for s in self.registry.sessions.values()
            if (request.get("all") or s.live or self._restarting(s))
            and (only is None or s.id in only)
            and caller.may("view", s)
        ]
        chosen.sort(key=lambda s: s.manifest["created_at"])
        gate = asyncio.Semaphore(_VIEWS_AT_ONCE)
        forest = self._forest()

        async def one(session: Session) -> Json:
            async with gate:
                keeper = session.keeper or 0
                view = await self._view(session, full=False, members=forest.get(keeper))
                if request.get("processes") and keeper in forest:
                    view["processes"] = proc.processes(forest[keeper])
                if request.get("lines"):
                    view["last_line"] = await last_line(session, self.screens, view["output"]["end"])
                if request.get("still"):
                    view["still"] = still(session, view, len(forest.get(keeper, [])))
                return view

        return list(await asyncio.gather(*(one(s) for s in chosen)))

    async def op_status(self, request: Json, caller: Caller) -> Json:
        if request.get("session"):
            session = await self._find(request, caller)
            if session.unreachable:
                await self.registry.connect(session)
            return await self._view(session, full=True)
        return {"host": self.daemon.about(), "sessions": await self.op_ls({"all": True}, caller)}

    async def op_ports(self, request: Json, caller: Caller) -> list[Json]:
        rows = []
        wanted = request.get("port")
        if wanted is not None and all(found[1] != wanted for found in ports.listeners().values()):
            return []
        forest = self._forest()
        for session in list(self.registry.sessions.values()):
            if not session.connected or not caller.may("view", session):
                continue
            whose = {"session": session.id, "session_name": session.name}
            found = ports.ports(forest.get(session.keeper or 0, []))
            rows += [{**row, **whose} for row in found if wanted in (None, row["port"])]
        return rows

    async def op_screen(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        if not session.terminal:
            raise invalid(f"{session.name} runs on pipes, it has no screen", f"hold logs {session.name}")
        end = await self._end(session)
        emulator = await self.screens.at(session, end)
        with emulator.lock:
            screen = emulator.screen
            return {
                "session": session.id,
                "offset": end,
                "cols": screen.size[0],
                "rows": screen.size[1],
                "text": screen.text(),
                "cursor": {"x": screen.cursor[0], "y": screen.cursor[1], "visible": screen.cursor_visible},
                "title": screen.title,
                "alternate": screen.alternate,
            }

    async def op_offset(self, request: Json, caller: Caller) -> Json:
        """Where the output of a time began, and what there is."""
        session = await self._find(request, caller)
        start, end = session.reader.bounds()
        since = number(request.get("since"), "a time")
        at = session.reader.offset_at(int(since * 1e6)) if since else start
        try:
            end = max(end, end if session.silent else await self._end(session))
        except HoldfastError:
            if not session.silent:
                raise
        return {
            "session": session.id,
            "name": session.name,
            "kind": session.kind,
            "start": start,
            "end": end,
            "at": at,
            "current": not session.silent,
            "record": session.manifest.get("record"),
        }

    async def op_recording(self, request: Json, caller: Caller) -> Json:
        return recording(await self._find(request, caller), whole(request.get("start"), "an offset"))

    async def op_doctor(self, request: Json, caller: Caller) -> list[Json]:
        return await doctor_checks.check(self.daemon, bool(request.get("deep")))

    async def op_keys(self, request: Json, caller: Caller) -> Json:
        """Whether the terminal wants application cursor keys, and what Return is, for clients that encode key names."""
        session = await self._live(request, caller)
        enter = session.enter.decode()
        if not session.terminal:
            return {"app_cursor": False, "enter": enter}
        emulator = await self.screens.at(session, await self._end(session))
        with emulator.lock:
            return {"app_cursor": bool(emulator.screen.modes().get("app_cursor")), "enter": enter}

    async def op_wait(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        start, timeout = whole(request.get("start"), "an offset"), number(request.get("timeout"), "a timeout")
        return await self.waits.wait(session, str(request.get("until") or ""), start, timeout, caller.operator)


def still(session: Session, view: Json, processes: int) -> bool:
    """Whether nothing of it changes before it is touched: its one process is blocked, or there is none."""
    return not session.connected or (processes <= 1 and view["activity"]["kind"] in _BLOCKED)


def _ids(given: object) -> set[str] | None:
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise invalid("`sessions` is not a list of ids", "leave it out")
    return set(given)
