"""A contract's verification as part of an attempt: in a session of its own, started once however often asked."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ..client import verification
from ..client.aio import AsyncHost, AsyncSession, start_request
from ..model.attempts import request_of, session_name
from ..model.errors import HoldfastError
from ..model.work import Fenced
from .session import Held, patiently, started

Json = dict[str, Any]


async def verify(
    host: AsyncHost, about: Json, *, n: int, run: str, epoch: int, acts_as: str | None = None
) -> list[Json]:
    """What became of each command. Whoever takes over finds the same session, running or ended.

    What the backend made is run by it, so it may do no more than the backend, who acted as `acts_as`, might.
    """
    checks = about["checks"]
    if not checks:
        return []
    plain = [{"command": c["command"], "timeout_s": c["timeout_s"]} for c in checks]
    program = os.path.join(os.path.dirname(verification.__file__), "verifier.py")
    project, version = about["project"], about["contract_version"]
    task = f"{project}/{about['task_id']}"
    # A number for each contract version: a second verification of the attempt is another session.
    name = session_name(f"verify-{project}"[:40], about["task_id"], n) + (f".{version}" if version > 1 else "")
    first = request_of(run, "verify", version)
    request = start_request(
        [sys.executable, "-I", program, json.dumps(plain)], name=name[-64:].lstrip("._-+"), cwd=about["root"],
        env={"HOLDFAST_TASK": task, "HOLDFAST_PROJECT": project, "HOLDFAST_RUN": run}, pipes=True, size=None,
        restart="never", idle_ttl=None, acts_as=None, why=f"verification of {task}", pids_max=None,
        memory_max=None, written_by=[*about["written_by"], *([acts_as] if acts_as else [])],
    ) | {"request": first, "brief": True, "record": True}  # fmt: skip
    try:
        made = await patiently(lambda: host.call("run", **request))
    except HoldfastError as e:
        if e.code != "not_allowed":
            raise
        made = await _handed_over(host, request, epoch, checks)
    session = AsyncSession(host, made["id"], made["name"])
    try:
        await host.work.call("run_session", run=run, session=session.id, generation=1, from_offset=0, epoch=epoch)
    except Fenced:  # cancelled in this moment, by somebody who could not know of this session yet
        await Held(host, session.id, session.name).end("its task is somebody else's, or nobody's")
        raise
    found: list[Json] = await patiently(lambda: verification.outcome(session, checks))
    return found


async def _handed_over(host: AsyncHost, request: Json, epoch: int, checks: list[Json]) -> Json:
    """The verification that a runner of another operator began. A person's is as good as our own; what an agent began
    under this id may have been set up to pass, so that is waited for, and then there is one of ours."""
    found = next((s for s in await started(host, request["request"]) if s["request"] == request["request"]), None)
    same = found is not None and (found["command"][1:], found["cwd"]) == (request["command"][1:], request["cwd"])
    if found is not None and same and found["started_by"]["kind"] == "human":
        return found
    if found is not None and found["live"]:
        await patiently(lambda: verification.outcome(AsyncSession(host, found["id"], found["name"]), checks))
    again = {**request, "request": f"{request['request']}-{epoch}", "name": f"{request['name'][:48]}.{epoch}"}
    made: Json = await patiently(lambda: host.call("run", **again))
    return made
