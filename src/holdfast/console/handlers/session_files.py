"""A session's files: open now, changed by attempts that ran in it, changed in its folder."""

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
    """The files that an attempt at a task changed, compared before and after; `omitted` more are not listed."""

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
    """Files below the session's folder that changed since it began, by any process; see `whole`."""

    root: str
    since: str
    files: list[ChangedFile]
    whole: bool
    skipped: list[str]


class Touched(msgspec.Struct, frozen=True):
    """`open` as the kernel reports now; `noted` from the record; `folder` is null for callers without that right."""

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
            return []  # a caller that may see the session may lack the right to see the work
        raise
    return found


async def _folder(call: HttpCall[Nothing, Nothing], session: Json) -> Json | None:
    """Changed files in the folder, for the owner of this home only: seeing a session does not include its disk."""
    root = str(session["cwd"] or "")
    if not call.who.get("owner") or session.get("isolation") or not os.path.isabs(root):
        return None
    since = datetime.fromisoformat(str(session["created_at"])).timestamp()
    return await asyncio.to_thread(folder.changed, root, since, call.host.home.path)


ROUTES = [
    Route(
        "GET",
        "/api/sessions/{session}/touched",
        "Files it has open, and files known to be changed.",
        Touched,
        touched,
    ),
]
