"""The files that a session has to do with: open now, changed by attempts that ran in it, changed in its folder."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from typing import Any

import msgspec

from ...client._async.host import AsyncHost
from ...client.files import changed_since as folder
from ...client.types import OpenFile
from ...model.errors import HoldfastError
from ..http.routes import HttpCall, Nothing, Route

Json = dict[str, Any]


class Noted(msgspec.Struct, frozen=True):
    """What one attempt at a task did to its files, by its own look before and after; `omitted` more are not listed."""

    task: str
    attempt: int
    run: str
    root: str
    begun_at: str
    created: list[str]
    changed: list[str]
    deleted: list[str]
    omitted: int


class ChangedFile(msgspec.Struct, frozen=True):
    path: str
    size: int
    at: str


class Folder(msgspec.Struct, frozen=True):
    """Files below the session's folder that changed since it began, whoever changed them; see `whole`."""

    root: str
    since: str
    files: list[ChangedFile]
    whole: bool
    skipped: list[str]


class Touched(msgspec.Struct, frozen=True):
    """`open` is the kernel's word on now; `noted` the record's; `folder` is null for who may not look around there."""

    open: list[OpenFile]
    noted: list[Noted]
    folder: Folder | None


async def touched(call: HttpCall[Nothing, Nothing]) -> Any:
    session = await call.host.call("status", session=call.word("session"))
    noted = await _noted(call.host, session["id"])
    return {"open": session["files"] or [], "noted": noted, "folder": await _folder(call, session)}


async def _noted(host: AsyncHost, session: str) -> list[Json]:
    try:
        found: list[Json] = await host.work.call("session_changes", session=session)
    except HoldfastError as e:
        if e.code == "not_allowed":
            return []  # who may see the session need not see the work
        raise
    return found


async def _folder(call: HttpCall[Nothing, Nothing], session: Json) -> Json | None:
    """To see a session is not to see its disk: only the owner of this home is told what lies around it."""
    root = str(session["cwd"] or "")
    if not call.who.get("owner") or session.get("isolation") or not os.path.isabs(root):
        return None
    since = datetime.fromisoformat(str(session["created_at"])).timestamp()
    return await asyncio.to_thread(folder.changed, root, since, call.host.home.path)


ROUTES = [
    Route(
        "GET",
        "/api/sessions/{session}/touched",
        "Files it has open, and what is known of those it changed.",
        Touched,
        touched,
    ),
]
