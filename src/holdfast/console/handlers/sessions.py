"""Sessions over HTTP: look, start, type, signal, end, and the controls."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from ...client._async.host import AsyncSession
from ...client.types import OpenFile, Screen, SessionStatus
from ...model.limits import TIMELINE_MAX, WHY_MAX
from ..http.routes import Because, HttpCall, Nothing, Route

Json = dict[str, Any]
_Why = Annotated[str, msgspec.Meta(max_length=WHY_MAX)] | None


class Session(SessionStatus, frozen=True):
    """A session as it is now; a list leaves out processes, connections and files."""

    last_line: str | None = None


class All(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    all: bool = False


class Start(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to start; without a command, the user's shell."""

    command: list[str] | None = None
    name: str | None = None
    cwd: str | None = None
    cols: int | None = None
    rows: int | None = None
    why: _Why = None


class TakeOver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A person who holds the controls is asked first, for half a minute; `force` takes them unasked."""

    force: bool = False
    why: _Why = None


class Hand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """To whom (a name or an id; without one, back to whom they were taken from), and what to say to them."""

    to: str | None = None
    note: _Why = None
    why: _Why = None


class Typed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text, then keys by name (Enter, Tab, Up, C-c …), then Enter if wanted. A secret is not kept in the journal."""

    text: str = ""
    keys: list[str] = []
    enter: bool = False
    secret: bool = False
    why: _Why = None


class Kill(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    signal: str = "TERM"
    to: str | None = None
    why: _Why = None


class Stop(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """TERM, then KILL after `grace_s` (10)."""

    grace_s: float | None = None
    why: _Why = None


class Rename(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    why: _Why = None


class Held(msgspec.Struct, frozen=True):
    """How the controls stand; `flushed` bytes of unread input were discarded."""

    controls: Json
    flushed: int = 0


class Sent(msgspec.Struct, frozen=True):
    session: str
    sent: int
    offset: int


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    before: int | None = None
    limit: int = TIMELINE_MAX


class Timeline(msgspec.Struct, frozen=True):
    """Who did what, oldest first; older ones with `before=next`."""

    entries: list[Json]
    next: int | None


async def ls(call: HttpCall[All, Nothing]) -> Any:
    return await call.host.call("ls", all=call.query.all, lines=True)


async def start(call: HttpCall[Nothing, Start]) -> Any:
    asked = call.body
    size = None if asked.cols is None or asked.rows is None else (asked.cols, asked.rows)
    made = await call.host.run(asked.command, name=asked.name, cwd=asked.cwd, size=size, why=asked.why)
    return await call.host.call("status", session=made.id)


async def show(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.call("status", session=call.word("session"))


async def take(call: HttpCall[Nothing, TakeOver]) -> Any:
    return await call.host.call("take", session=call.word("session"), force=call.body.force, why=call.body.why)


async def release(call: HttpCall[Nothing, Because]) -> Any:
    return await call.host.call("release", session=call.word("session"), why=call.body.why)


async def hand(call: HttpCall[Nothing, Hand]) -> Any:
    body = call.body
    return await call.host.call("hand", session=call.word("session"), to=body.to, note=body.note, why=body.why)


async def send(call: HttpCall[Nothing, Typed]) -> Any:
    body = call.body
    session = AsyncSession(call.host, call.word("session"), "")
    await session.send(body.text, keys=body.keys, enter=body.enter, secret=body.secret, why=body.why)


async def kill(call: HttpCall[Nothing, Kill]) -> Any:
    body = call.body
    await call.host.call("kill", session=call.word("session"), signal=body.signal, target=body.to, why=body.why)


async def stop(call: HttpCall[Nothing, Stop]) -> Any:
    await call.host.call("stop", session=call.word("session"), grace_s=call.body.grace_s, why=call.body.why)
    return await call.host.call("status", session=call.word("session"))


async def restart(call: HttpCall[Nothing, Because]) -> Any:
    await call.host.call("restart", session=call.word("session"), why=call.body.why)
    return await call.host.call("status", session=call.word("session"))


async def rename(call: HttpCall[Nothing, Rename]) -> Any:
    done = await call.host.call("rename", session=call.word("session"), name=call.body.name, why=call.body.why)
    return await call.host.call("status", session=done["id"])


async def remove(call: HttpCall[Nothing, Because]) -> Any:
    await call.host.call("rm", session=call.word("session"), why=call.body.why)


async def screen(call: HttpCall[Nothing, Nothing]) -> Any:
    return await call.host.call("screen", session=call.word("session"))


async def timeline(call: HttpCall[Page, Nothing]) -> Any:
    page = call.query
    return await call.host.call("timeline", session=call.word("session"), before=page.before, limit=page.limit)


async def files(call: HttpCall[Nothing, Nothing]) -> Any:
    return (await call.host.call("status", session=call.word("session")))["files"]


_ONE = "/api/sessions/{session}"
ROUTES = [
    Route("GET", "/api/sessions", "What runs; with all=1 the ended ones too.", list[Session], ls, query=All),
    Route("POST", "/api/sessions", "Start a session.", Session, start, body=Start, status=201),
    Route("GET", _ONE, "A session, observed now.", Session, show),
    Route("DELETE", _ONE, "Forget an ended session, its output too.", None, remove, body=Because),
    Route("POST", _ONE + "/take", "Take the controls.", Held, take, body=TakeOver),
    Route("POST", _ONE + "/release", "Give the controls back.", Held, release, body=Because),
    Route("POST", _ONE + "/hand", "Hand the controls to another operator.", Held, hand, body=Hand),
    Route("POST", _ONE + "/send", "Type into it.", None, send, body=Typed),
    Route("POST", _ONE + "/kill", "Send a signal.", None, kill, body=Kill),
    Route("POST", _ONE + "/stop", "End its whole process tree.", Session, stop, body=Stop),
    Route("POST", _ONE + "/restart", "Start it again as its next generation.", Session, restart, body=Because),
    Route("POST", _ONE + "/rename", "Give it another name.", Session, rename, body=Rename),
    Route("GET", _ONE + "/screen", "Its rendered screen as text.", Screen, screen),
    Route("GET", _ONE + "/timeline", "Who did what in it.", Timeline, timeline, query=Page),
    Route("GET", _ONE + "/files", "The files that its processes have open.", list[OpenFile], files),
]
