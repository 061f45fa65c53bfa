"""Workers for the suites: a work object on a store, an expired lease, a worker that died inside a step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, cast

from ..work.service import CALLS, Work
from .store import opened

Json = dict[str, Any]
SHORT_S = 0.05  # a lease that is meant to run out


class _ByName:
    """A work object that is called by operation name, as clients do, so that a store's fast paths are tested too."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return partial(self._work.call, name) if name in CALLS else getattr(self._work, name)


@asynccontextmanager
async def working(url: str) -> AsyncIterator[Work]:
    async with opened(url) as store:
        yield cast(Work, _ByName(Work(store, "op_test")))


async def expired(work: Work, run: str) -> None:
    """Wait until the lease has expired on the database's clock."""
    for _ in range(3000):
        if not (await work.run_status(run=run))["leased"]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the lease did not run out")


async def interrupted(work: Work, effect: str, key: str = "k", args: Any = None) -> Json:
    """A run whose worker died inside a step, taken over by another worker."""
    first = await work.begin_run(worker="w1", ttl_s=SHORT_S)
    # The intent may come too late for so short a lease on a busy machine: then it is another run's turn.
    try:
        await work.step_begin(run=first["run"], key=key, epoch=first["epoch"], effect=effect, args=args)
    except Exception as e:
        if getattr(e, "code", "") == "fenced":
            return await interrupted(work, effect, key, args)
        raise
    await expired(work, first["run"])
    return await work.begin_run(run=first["run"], worker="w2")
