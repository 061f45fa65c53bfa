"""What is kept of an attempt's files, also when nobody was there at its end; and patience with a host that restarts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from ..client import changes
from ..client.aio import AsyncHost, AsyncSession
from ..client.judging import shortened
from ..model.errors import HoldfastError
from ..model.limits import STOP_GRACE_S, STORE_WAIT_S
from .folder import Folder, left_behind

Json = dict[str, Any]
BEFORE, LIST, PATCH, BRIEF = "changes/before", "changes/list.json", "changes/patch", "brief.md"
_PAUSE_S = 0.25  # between two tries of a host that is being restarted


async def patiently(call: Callable[[], Awaitable[Any]]) -> Any:
    """A call that bears repetition, while the host is away; as long as a store is waited for."""
    deadline = time.monotonic() + STORE_WAIT_S
    while True:
        try:
            return await call()
        except HoldfastError as e:
            if e.code != "host_gone" or time.monotonic() >= deadline:
                raise
        await asyncio.sleep(_PAUSE_S)


async def keep_changes(host: AsyncHost, run: str, artifacts: Sequence[str], epoch: int | None) -> Json:
    """Compare the files with how they were at the start; list and patch become artifacts. How many there are."""
    work = host.work
    before = await patiently(lambda: work.artifact(run, BEFORE))
    told, patch = await asyncio.to_thread(changes.outcome, before, artifacts, host.home.path)
    listed = await work.put_artifact(
        run, LIST, json.dumps(told, indent=1).encode(), media="application/json", epoch=epoch
    )
    kept = await work.put_artifact(run, PATCH, patch, media="text/x-diff", epoch=epoch)
    short = shortened(told)
    short |= {"patch": {"artifact": PATCH, "sha256": kept["sha256"], "bytes": kept["size"]},
              "list": {"artifact": LIST, "sha256": listed["sha256"]}}  # fmt: skip
    await work.call("attempt_note", run=run, epoch=epoch, changes=short)
    counts: Json = short["counts"]
    return counts


async def late_changes(host: AsyncHost, run: str, artifacts: Sequence[str]) -> None:
    """The same for an attempt that has ended: as evidence, if it ever began, and once."""
    try:
        named = {a["name"] for a in await host.work.call("artifact_ls", run=run)}
        if BEFORE in named and PATCH not in named:
            await keep_changes(host, run, artifacts, None)
    except HoldfastError as e:
        if e.code not in ("busy", "not_found"):
            raise  # somebody else is at it, or has removed it


async def find_session(host: AsyncHost, names: Sequence[str]) -> AsyncSession | None:
    """The live session of one of these names."""
    if not names:
        return None
    for one in await patiently(lambda: host.call("ls", all=False)):
        if one["name"] in names:
            return AsyncSession(host, one["id"], one["name"])
    return None


async def sweep(host: AsyncHost) -> None:
    """Attempts that ended while no runner was there (cancelled, most likely): their processes end, their changes are
    kept, their files go. What is under way is left alone."""
    for run in left_behind(host.home.path):
        folder = Folder(host.home.path, run)
        try:
            state = (await host.work.call("run_status", run=run))["state"]
        except HoldfastError as e:
            if e.code != "not_found":
                raise
            continue  # another store's
        if state == "active":
            continue
        session = await find_session(host, folder.sessions())
        if session is not None:
            await patiently(partial(session.stop, STOP_GRACE_S, why="its attempt has ended"))
        contract = folder.read_contract()
        await late_changes(host, run, contract.get("artifacts") or [])
        folder.remove()
