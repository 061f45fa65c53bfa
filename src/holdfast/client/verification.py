"""Verification: a contract's commands in a held session, and what became of each. verification_sync.py is made from it.

The session outlives its caller, its whole tree can be ended, and its log has everything that the commands printed.
"""

from __future__ import annotations

import json
import os
import re
import sys

from ..model import ids
from ..model.limits import CHECK_TAIL_BYTES, NAME_MAX
from ..model.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .aio import AsyncHost, AsyncSession

    Json = dict[str, Any]

_START_S, _EACH_S = 30.0, 10.0  # beyond the commands' own times: to begin, and to end one that took too long
_READ_BYTES = 4 << 20  # of the log's end, where the results are: 64 commands with 4 KiB each, escaped, fit with room
_STOP_S = 2.0  # for what the commands left running: the answer is there, and nobody waits for them


async def verify(
    host: AsyncHost, checks: Sequence[Mapping[str, Any]], *, cwd: str, name: str = "task", run: str | None = None,
    epoch: int | None = None, env: Mapping[str, str] | None = None, why: str | None = None,
    begun: Callable[[str], object] | None = None,
) -> list[Json]:  # fmt: skip
    """Run the checks; [{command, exit_code, state, duration_ms, tail, session, at}]. `begun` is told the session's id.

    With a `run` the session is noted as one of its sessions, so that cancelling the task ends it.
    """
    if not checks:
        return []
    session = await begin(host, checks, cwd=cwd, name=name, env=env, why=why)
    if begun is not None:
        begun(session.id)
    if run is not None:
        await host.work.call("run_session", run=run, session=session.id, generation=1, from_offset=0, epoch=epoch)
    return await outcome(session, checks)


async def begin(
    host: AsyncHost, checks: Sequence[Mapping[str, Any]], *, cwd: str, name: str = "task",
    env: Mapping[str, str] | None = None, why: str | None = None,
) -> AsyncSession:  # fmt: skip
    """The session in which they run."""
    program = os.path.join(os.path.dirname(__file__), "verifier.py")
    plain = [{"command": c["command"], "timeout_s": c["timeout_s"]} for c in checks]
    label = re.sub(r"[^A-Za-z0-9._-]", "-", name)[: NAME_MAX - 16]
    return await host.run(
        [sys.executable, "-I", program, json.dumps(plain)], name=f"verify-{label}-{ids.new('', 6)}", cwd=cwd,
        pipes=True, env=env, why=why,
    )  # fmt: skip


async def outcome(session: AsyncSession, checks: Sequence[Mapping[str, Any]]) -> list[Json]:
    """Wait for them; what became of each. One whose end was not seen is `unknown`, never passed."""
    patience = _START_S + sum(float(c["timeout_s"]) + _EACH_S for c in checks)
    await session.wait_for("exit", None, patience)
    status = await session.host.call("status", session=session.id)
    if status["state"] == "live":
        await session.stop(_STOP_S, why="its verification has ended")
        status = await session.host.call("status", session=session.id)
    end = status["output"]["end"]
    start = max(status["output"]["start"], end - _READ_BYTES)
    said = b"".join([chunk.data async for chunk in session.output(start, end=end) if chunk.stream == "stderr"])
    return results(said, checks, session.id)


def results(said: bytes, checks: Sequence[Mapping[str, Any]], session: str) -> list[Json]:
    """What the session's main program said of each command, or that nobody knows."""
    found: dict[int, Json] = {}
    for line in said.splitlines():
        try:
            about = json.loads(line)
        except ValueError:
            continue  # the beginning is cut off, or it was killed while it wrote
        if isinstance(about, dict) and isinstance(about.get("results"), list):
            found |= dict(enumerate(about["results"]))
        elif isinstance(about, dict) and "result" in about:
            found[about["n"]] = about["result"]
    made = []
    for n, check in enumerate(checks):
        one = found.get(n, {"exit_code": None, "state": "unknown", "duration_ms": None, "tail": "", "at": None})
        at = one["at"] and rfc3339(one["at"])
        made.append({**one, "command": check["command"], "session": session, "at": at,
                     "tail": one["tail"][-CHECK_TAIL_BYTES:]})  # fmt: skip
    return made
