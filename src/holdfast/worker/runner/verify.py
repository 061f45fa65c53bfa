"""Runs a contract's verification for an attempt: in its own session, started once.

An attempt may act as its runner's operator, and knows its run. So a verification is not found by a name or an id, which
could be guessed and used first, but by what was started, when and by whom: the same commands, in the same folder and
environment, after the backend's end.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from ...client._async import verification
from ...client._async.host import AsyncHost, AsyncSession, start_request
from ...client._async.work import AsyncWork
from ...client.process import VERIFIER
from ...model import ids
from ...model.errors import HoldfastError
from ...model.work.effects import Fenced
from .attempt_states import request_of, session_name
from .backend_session import BackendSession, patiently, seconds, started

Json = dict[str, Any]


async def verify(
    host: AsyncHost,
    about: Json,
    *,
    n: int,
    run: str,
    epoch: int,
    tell: Callable[..., None],
    acts_as: str | None = None,
    since: float | None = None,
) -> list[Json]:
    """The result of each command. A runner that takes over finds the same session, running or ended.

    It runs files that the backend made, so it has no more rights than the backend, which acted as `acts_as`. `since`
    is the time from which nothing of the backend ran.
    """
    checks = about["checks"]
    if not checks:
        return []
    plain = [{"command": c["command"], "timeout_s": c["timeout_s"]} for c in checks]
    program = VERIFIER
    project, version = about["project"], about["contract_version"]
    task = f"{project}/{about['task_id']}"
    # A number for each contract version: a second verification of the attempt is another session.
    name = session_name(f"verify-{project}"[:40], about["task_id"], n) + (f".{version}" if version > 1 else "")
    request = start_request(
        [sys.executable, "-I", program, json.dumps(plain)],
        name=name[-64:].lstrip("._-+"),
        cwd=about["root"],
        env={"HOLDFAST_TASK": task, "HOLDFAST_PROJECT": project, "HOLDFAST_RUN": run},
        pipes=True,
        size=None,
        restart="never",
        idle_ttl=None,
        acts_as=None,
        why=f"verification of {task}",
        pids_max=None,
        memory_max=None,
        written_by=[*about["written_by"], *([acts_as] if acts_as else [])],
    ) | {"brief": True, "record": True}
    wanted = request_of(run, "verify", version)
    made = await _begun(host, wanted, request, since, checks, tell) or await _begin(host, wanted, request)
    session = AsyncSession(host, made["id"], made["name"])
    try:
        await host.work.call("run_session", run=run, session=session.id, generation=1, from_offset=0, epoch=epoch)
    except Fenced:  # cancelled just now, by a caller that could not know of this session yet
        await BackendSession(host, session.id, session.name).end("another worker has its task, or it was cancelled")
        raise
    found: list[Json] = await patiently(lambda: verification.outcome(session, checks))
    return found


async def _begun(
    host: AsyncHost, wanted: str, request: Json, since: float | None, checks: list[Json], tell: Callable[..., None]
) -> Json | None:
    """The verification that this operator's runner, or a person's, began. Any other session of it may have been
    made to pass: it is reported, and waited for, so that two do not run in one folder."""
    me = (await patiently(host.whoami))["id"]
    found = await started(host, wanted, request)
    for one in found:
        by = one["started_by"]
        trusted = by["operator"] == me or by["kind"] == "human"
        if trusted and one["same"] and (since is None or seconds(one["created_at"]) >= since):
            return one
    for one in found:
        tell("not_ours", session=one["name"], by=one["started_by"]["name"])
        if one["live"]:
            other = AsyncSession(host, one["id"], one["name"])
            await patiently(lambda other=other: verification.outcome(other, checks))  # type: ignore[misc]
    return None


async def _begin(host: AsyncHost, wanted: str, request: Json) -> Json:
    """Start a new one, with an unpredictable id."""
    secret = ids.new("")
    asked = {**request, "request": f"{wanted}-{secret}"}
    try:
        made: Json = await patiently(lambda: host.call("run", **asked))
    except HoldfastError as e:
        if e.code != "conflict":  # another session has the name
            raise
        asked["name"] = f"{request['name'][:48]}.{secret[:8]}"
        made = await patiently(lambda: host.call("run", **asked))
    return made


def words(checks: list[Json]) -> str:
    """The commands, for people."""
    told = (c["command"] if isinstance(c["command"], str) else " ".join(c["command"]) for c in checks)
    return ", ".join(told) or "nothing"


async def settle_outdated(work: AsyncWork, run: str, epoch: int, current: str) -> None:
    """Settle verifications of outdated contracts whose runner died, instead of waiting for them."""
    for step in await work.call("step_ls", run=run, state="in_doubt"):
        if step["key"].startswith("attempt:verify:") and step["key"] != current:
            await work.call(
                "step_settle",
                run=run,
                key=step["key"],
                outcome="not_done",
                epoch=epoch,
                evidence="its runner died, and the contract was changed since",
            )
