"""Stores an attempt's file changes as evidence, also if no runner was there at its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from ...client._async.host import AsyncHost
from ...client.files import snapshot
from ...model.errors import HoldfastError
from ...model.work.file_changes import shortened
from .attempt_folder import Folder, left_behind
from .attempt_states import request_of
from .backend_session import end_all, patiently

Json = dict[str, Any]
BEFORE, LIST, PATCH, BRIEF = "changes/before", "changes/list.json", "changes/patch", "brief.md"


async def keep_changes(host: AsyncHost, run: str, artifacts: Sequence[str], epoch: int | None) -> Json:
    """Compare the files with their state at the start; store list and patch as artifacts. Returns their number."""
    work = host.work
    before = await patiently(lambda: work.artifact(run, BEFORE))
    told, patch = await asyncio.to_thread(snapshot.outcome, before, artifacts, host.home.path)
    listed = await work.put_artifact(
        run, LIST, json.dumps(told, indent=1).encode(), media="application/json", epoch=epoch
    )
    kept = await work.put_artifact(run, PATCH, patch, media="text/x-diff", epoch=epoch)
    short = shortened(told)
    short |= {
        "patch": {"artifact": PATCH, "sha256": kept["sha256"], "bytes": kept["size"]},
        "list": {"artifact": LIST, "sha256": listed["sha256"]},
    }
    await work.call("attempt_note", run=run, epoch=epoch, changes=short)
    counts: Json = short["counts"]
    return counts


async def late_changes(host: AsyncHost, run: str, artifacts: Sequence[str]) -> None:
    """The same for an attempt that has ended: once, and only if it began."""
    try:
        named = {a["name"] for a in await host.work.call("artifact_ls", run=run)}
        if BEFORE in named and PATCH not in named:
            await keep_changes(host, run, artifacts, None)
    except HoldfastError as e:
        if e.code not in ("busy", "not_found"):
            raise  # another runner handles it, or removed it


async def sweep(host: AsyncHost) -> None:
    """Clean up attempts that ended while no runner was there (usually cancelled): end their processes, store their
    changes, remove their files. Active attempts are left alone."""
    for run in left_behind(host.home.path):
        folder = Folder(host.home.path, run)
        try:
            state = (await host.work.call("run_status", run=run))["state"]
        except HoldfastError as e:
            if e.code != "not_found":
                raise
            continue  # of another store
        if state in ("active", "parked"):
            continue
        await end_all(host, request_of(run), "its attempt has ended")
        contract = folder.read_contract()
        await late_changes(host, run, contract.get("artifacts") or [])
        folder.remove()
