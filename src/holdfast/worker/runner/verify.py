"""A contract's verification as part of an attempt: in a session of its own, started once however often asked.

An attempt may act as its runner's own operator, and knows its run. So a verification is not found by a name or an id
that could be guessed and taken first, but by what was started, when and by whom: the same commands, in the same folder
and surroundings, after the backend's end.
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
    """What became of each command. Whoever takes over finds the same session, running or ended.

    What the backend made is run by it, so it may do no more than the backend, who acted as `acts_as`, might. `since` is
    when nothing of the backend ran any more.
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
    except Fenced:  # cancelled in this moment, by somebody who could not know of this session yet
        await BackendSession(host, session.id, session.name).end("its task is somebody else's, or nobody's")
        raise
    found: list[Json] = await patiently(lambda: verification.outcome(session, checks))
    return found


async def _begun(
    host: AsyncHost, wanted: str, request: Json, since: float | None, checks: list[Json], tell: Callable[..., None]
) -> Json | None:
    """The verification that this operator's runner, or a person's, began. Anything else of that request may have been
    set up to pass: it is told, and waited for, so that two do not run in one folder."""
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
    """One of our own, under an id that nobody can know before."""
    secret = ids.new("")
    asked = {**request, "request": f"{wanted}-{secret}"}
    try:
        made: Json = await patiently(lambda: host.call("run", **asked))
    except HoldfastError as e:
        if e.code != "conflict":  # somebody has taken the name
            raise
        asked["name"] = f"{request['name'][:48]}.{secret[:8]}"
        made = await patiently(lambda: host.call("run", **asked))
    return made


def words(checks: list[Json]) -> str:
    """The commands, for people."""
    told = (c["command"] if isinstance(c["command"], str) else " ".join(c["command"]) for c in checks)
    return ", ".join(told) or "nothing"


async def settle_outdated(work: AsyncWork, run: str, epoch: int, current: str) -> None:
    """Verifications of contracts that are no longer in force, and whose runner died, are not waited for."""
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
