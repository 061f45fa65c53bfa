"""A contract's verification as part of an attempt: in a session of its own, started once however often asked."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from ..client import verification
from ..client.aio import AsyncHost, AsyncSession, start_request
from ..model.attempts import session_name
from ..model.work import Fenced
from .session import Held, patiently

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
    request = start_request(
        [sys.executable, "-I", program, json.dumps(plain)], name=name[-64:].lstrip("._-+"), cwd=about["root"],
        env={"HOLDFAST_TASK": task, "HOLDFAST_PROJECT": project, "HOLDFAST_RUN": run}, pipes=True, size=None,
        restart="never", idle_ttl=None, acts_as=None, why=f"verification of {task}", pids_max=None,
        memory_max=None, written_by=[*about["written_by"], *([acts_as] if acts_as else [])],
    ) | {"request": f"req_{run}-verify-{version}", "brief": True, "record": True}  # fmt: skip
    made = await patiently(lambda: host.call("run", **request))
    session = AsyncSession(host, made["id"], made["name"])
    try:
        await host.work.call("run_session", run=run, session=session.id, generation=1, from_offset=0, epoch=epoch)
    except Fenced:  # cancelled in this moment, by somebody who could not know of this session yet
        await Held(host, session.id, session.name).end("its task is somebody else's, or nobody's")
        raise
    found: list[Json] = await patiently(lambda: verification.outcome(session, checks))
    return found
