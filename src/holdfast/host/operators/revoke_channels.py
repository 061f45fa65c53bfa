"""After a revocation: every keeper lets go of the channels and the controls that rest on it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from ...model.errors import HoldfastError
from ..sessions.registry import Registry
from ..sessions.session import Session
from .caller import scope_of
from .operators import Operators

Json = dict[str, Any]


async def close_channels(registry: Registry, operators: Operators, wanted: list[Json]) -> tuple[int, int]:
    """Ask every keeper at once to let go; how many channels were closed, and how many keepers are too old to."""
    closed = unable = 0

    async def one(session: Session) -> None:
        nonlocal closed, unable
        for what in wanted:
            if not session.connected:
                return
            try:
                closed += int((await session.line.act("revoke", **what)).get("closed") or 0)
            except HoldfastError as e:
                unable += e.code == "unsupported"
                return
        await _dispossess(session, operators)

    await asyncio.gather(*(one(s) for s in list(registry.sessions.values())))
    return closed, unable


async def _dispossess(session: Session, operators: Operators) -> None:
    """Controls that were taken without a channel are given up by one who may not type any more."""
    holder = operators.by_id.get(str(session.controls.get("holder")))
    if holder is None or not session.connected:
        return
    if not operators.allows(holder.id, "type", scope_of(session), time.time()):
        with contextlib.suppress(HoldfastError):  # it let go by itself
            await session.line.act("revoke", operator=holder.id)
