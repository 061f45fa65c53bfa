"""Verification: a contract's commands in a held session, and what became of each. verification_sync.py is made from it.

The session outlives its caller, its whole tree can be ended, and its log has everything that the commands printed.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime

from ...model import ids
from ...model.limits import CHECK_TAIL_BYTES, NAME_MAX, RUN_LEASE_S
from ...model.times import rfc3339
from ...system import programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .host import AsyncHost, AsyncSession

    Json = dict[str, Any]

_START_S, _EACH_S = 30.0, 10.0  # beyond the commands' own times: to begin, and to end one that took too long
_STOP_S = 2.0  # for what the commands left running: the answer is there, and nobody waits for them


async def verify(
    host: AsyncHost,
    checks: Sequence[Mapping[str, Any]],
    *,
    cwd: str,
    name: str = "task",
    run: str | None = None,
    epoch: int | None = None,
    env: Mapping[str, str] | None = None,
    why: str | None = None,
    begun: Callable[[str], object] | None = None,
    written_by: Sequence[str] = (),
) -> list[Json]:
    """Run the checks; [{command, exit_code, state, duration_ms, tail, session, at}]. `begun` is told the session's
    name, before it starts: whoever gives up while that is under way can still end it.

    `written_by` are the operators whose commands these are: an agent's may do no more than that agent. With a `run` the
    session is noted as one of its sessions, so that cancelling the task ends it.
    """
    if not checks:
        return []
    lease = None if run is None or epoch is None else (run, epoch)
    ttl = 0.0 if lease is None else await _lasting(host, *lease)
    label = re.sub(r"[^A-Za-z0-9._-]", "-", name)[: NAME_MAX - 16]
    called = f"verify-{label}-{ids.new('', 6)}"
    if begun is not None:
        begun(called)
    session = await begin(host, checks, cwd=cwd, name=called, env=env, why=why, written_by=written_by)
    if run is not None:
        await host.work.call("run_session", run=run, session=session.id, generation=1, from_offset=0, epoch=epoch)
    return await outcome(session, checks, lease, ttl)


async def begin(
    host: AsyncHost,
    checks: Sequence[Mapping[str, Any]],
    *,
    cwd: str,
    name: str,
    env: Mapping[str, str] | None = None,
    why: str | None = None,
    written_by: Sequence[str] = (),
) -> AsyncSession:
    """The session in which they run."""
    program = programs.VERIFIER
    plain = [{"command": c["command"], "timeout_s": c["timeout_s"]} for c in checks]
    return await host.run(
        [sys.executable, "-I", program, json.dumps(plain)],
        name=name,
        cwd=cwd,
        pipes=True,
        env=env,
        why=why,
        written_by=written_by,
        record=True,
    )


async def outcome(
    session: AsyncSession, checks: Sequence[Mapping[str, Any]], lease: tuple[str, int] | None = None, ttl: float = 0.0
) -> list[Json]:
    """Wait for them; what became of each. One whose end was not seen is `unknown`, never passed.

    A `lease` (run, epoch) is kept up meanwhile, by `ttl` seconds: commands may take longer than it lasts.
    """
    left = _START_S + sum(float(c["timeout_s"]) + _EACH_S for c in checks)
    while left > 0:
        part = left if lease is None else min(left, ttl / 3)
        if (await session.wait_for("exit", None, part))["event"] != "timeout":
            break
        left -= part
        if lease is not None:
            await session.host.work.call("lease_renew", run=lease[0], epoch=lease[1], ttl_s=ttl)
    status = await session.host.call("status", session=session.id)
    if status["state"] == "live":
        await session.stop(_STOP_S, why="its verification has ended")
        status = await session.host.call("status", session=session.id)
    from ...model.work.verification_record import READ_BYTES

    end = status["output"]["end"]
    start = max(status["output"]["start"], end - READ_BYTES)
    said = b"".join([chunk.data async for chunk in session.output(start, end=end) if chunk.stream == "stderr"])
    return results(said, checks, session.id)


async def _lasting(host: AsyncHost, run: str, epoch: int) -> float:
    """Renew a lease; for how long, as often as it is kept up: not less than it still had."""
    held = await host.work.call("run_status", run=run)
    times = [datetime.fromisoformat(held[k]).timestamp() if held[k] else 0.0 for k in ("lease_until", "observed_at")]
    ttl = max(RUN_LEASE_S, times[0] - times[1])
    await host.work.call("lease_renew", run=run, epoch=epoch, ttl_s=ttl)
    return ttl


def results(said: bytes, checks: Sequence[Mapping[str, Any]], session: str) -> list[Json]:
    """What the session's main program said of each command, or that nobody knows."""
    from ...model.work.verification_record import told

    found = told(said)
    made = []
    for n, check in enumerate(checks):
        one = found.get(n, {"exit_code": None, "state": "unknown", "duration_ms": None, "tail": "", "at": None})
        at = one["at"] and rfc3339(one["at"])
        made.append(
            {**one, "command": check["command"], "session": session, "at": at, "tail": one["tail"][-CHECK_TAIL_BYTES:]}
        )
    return made
