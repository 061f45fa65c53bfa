"""Operations that look: nothing they do changes a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from ...api.channels import Recording
from ...api.observe import Facts, Keys, ListPorts, Ls, Offset, Ping, Screen, Status, Wait
from ...model.errors import HoldfastError, invalid
from ..channels.recording import recording as page
from ..operators.caller import Caller
from ..screen.emulators import Screens
from ..screen.last_line import last_line
from ..sessions import find
from ..sessions.registry import Registry
from ..sessions.session import Session
from . import look, machine_facts
from . import ports as net
from . import processes as proc
from .look import Look
from .wait import Waits

Json = dict[str, Any]

_VIEWS_AT_ONCE = 32  # keepers asked in parallel by `ls`
_BLOCKED = ("waiting_for_input", "waiting_for_secret", "menu", "at_prompt", "exited")


class ObserveParts(NamedTuple):
    """What the handlers here use of the host; `about` is what it says of itself."""

    registry: Registry
    screens: Screens
    look: Look
    waits: Waits
    about: Callable[[], Json]


@Ping.answered
async def ping(parts: ObserveParts, caller: Caller, request: Ping) -> Json:
    return {"host": parts.about(), "operator": caller.actor}


@Ls.answered
async def ls(parts: ObserveParts, caller: Caller, request: Ls) -> list[Json]:
    only = None if request.sessions is None else set(request.sessions)
    chosen = [
        s
        for s in parts.registry.sessions.values()
        if (request.all or s.live or look.restarting(s)) and (only is None or s.id in only) and caller.may("view", s)
    ]
    chosen.sort(key=lambda s: s.manifest["created_at"])
    gate = asyncio.Semaphore(_VIEWS_AT_ONCE)
    forest = parts.look.forest()

    async def one(session: Session) -> Json:
        async with gate:
            keeper = session.keeper or 0
            view = await parts.look.view(session, full=False, members=forest.get(keeper))
            if request.processes and keeper in forest:
                view["processes"] = proc.processes(forest[keeper])
            if request.lines:
                view["last_line"] = await last_line(session, parts.screens, view["output"]["end"])
            if request.still:
                view["still"] = still(session, view, len(forest.get(keeper, [])))
            return view

    return list(await asyncio.gather(*(one(s) for s in chosen)))


@Status.answered
async def status(parts: ObserveParts, caller: Caller, request: Status) -> Json:
    if request.session:
        session = await find.found(parts.registry, request.session, caller)
        if session.unreachable:
            await parts.registry.connect(session)
        return await parts.look.view(session, full=True)
    return {"host": parts.about(), "sessions": await ls(parts, caller, Ls(all=True))}


@ListPorts.answered
async def ports(parts: ObserveParts, caller: Caller, request: ListPorts) -> list[Json]:
    rows: list[Json] = []
    wanted = request.port
    if wanted is not None and all(found[1] != wanted for found in net.listeners().values()):
        return []
    forest = parts.look.forest()
    for session in list(parts.registry.sessions.values()):
        if not session.connected or not caller.may("view", session):
            continue
        whose = {"session": session.id, "session_name": session.name}
        found = net.ports(forest.get(session.keeper or 0, []))
        rows += [{**row, **whose} for row in found if wanted in (None, row["port"])]
    return rows


@Facts.answered
async def facts(parts: ObserveParts, caller: Caller, request: Facts) -> Json:
    numbers = [list(dict.fromkeys(given or ())) for given in (request.ports, request.pids)]
    return await machine_facts.facts(parts.look, caller, *numbers)


@Screen.answered
async def screen(parts: ObserveParts, caller: Caller, request: Screen) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    if not session.terminal:
        raise invalid(f"{session.name} runs on pipes, it has no screen", f"hold logs {session.name}")
    end = await look.end(session)
    emulator = await parts.screens.at(session, end)
    with emulator.lock:
        shown = emulator.screen
        return {
            "session": session.id,
            "offset": end,
            "cols": shown.size[0],
            "rows": shown.size[1],
            "text": shown.text(),
            "cursor": {"x": shown.cursor[0], "y": shown.cursor[1], "visible": shown.cursor_visible},
            "title": shown.title,
            "alternate": shown.alternate,
        }


@Offset.answered
async def offset(parts: ObserveParts, caller: Caller, request: Offset) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    start, end = session.reader.bounds()
    at = session.reader.offset_at(int(request.since * 1e6)) if request.since else start
    try:
        end = max(end, end if session.silent else await look.end(session))
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


@Recording.answered
async def recording(parts: ObserveParts, caller: Caller, request: Recording) -> Json:
    return page(await find.found(parts.registry, request.session, caller), request.start)


@Keys.answered
async def keys(parts: ObserveParts, caller: Caller, request: Keys) -> Json:
    """Whether the terminal wants application cursor keys, and what Return is, for clients that encode key names."""
    session = await find.live(parts.registry, request.session, caller)
    enter = session.enter.decode()
    if not session.terminal:
        return {"app_cursor": False, "enter": enter}
    emulator = await parts.screens.at(session, await look.end(session))
    with emulator.lock:
        return {"app_cursor": bool(emulator.screen.modes().get("app_cursor")), "enter": enter}


@Wait.answered
async def wait(parts: ObserveParts, caller: Caller, request: Wait) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    return await parts.waits.wait(session, request.until, request.start, request.timeout, caller.operator)


def still(session: Session, view: Json, processes: int) -> bool:
    """Whether nothing of it changes before it is touched: its one process is blocked, or there is none."""
    return not session.connected or (processes <= 1 and view["activity"]["kind"] in _BLOCKED)
