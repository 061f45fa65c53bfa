"""The calls by which workers find their runs: part of `Work`, in a file of their own."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...model import ids
from ...model.errors import invalid
from ...model.limits import JOB_CRASHES_MAX, JOBS_MAX, PARKED_SHOWN_MAX, RUN_LEASE_S
from ...model.work.effects import check_word
from ...store.base import Store
from ...system import own_process
from ...wire import json_values
from . import claim_next, crashes, lease, rows
from .worker_process import check_process

Json = dict[str, Any]


class JobCalls:
    """Needs what `Work` has: `store`, `by`, `_run`."""

    store: Store
    by: str

    async def _run(self, run: str) -> str:
        raise NotImplementedError

    async def run_claim(
        self,
        *,
        jobs: list[str],
        worker: str,
        ttl_s: float = RUN_LEASE_S,
        standby: bool = False,
        max_crashes: dict[str, int] | None = None,
        left: list[str] | None = None,
        process: Json | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """The next run of these jobs that is free, leased to this worker; `run` is null when there is none.

        What workers of this machine left by dying is counted first; with `max_crashes` of a job its run is parked.
        `left`: processes that are known to have ended by themselves.
        """
        if type(jobs) is not list or not 0 < len(jobs) <= JOBS_MAX:
            raise invalid(f"a worker knows 1 to {JOBS_MAX} jobs", "register them in a holdfast.Jobs()")
        wanted = claim_next.Claim(
            jobs=tuple(check_word("a job", job) for job in jobs),
            worker=check_word("a worker", worker),
            ttl=lease.check_ttl(ttl_s),
            standby=bool(standby),
            request=request or ids.new("req_"),
            process=check_process(process),
        )
        await self._count_crashes(wanted.jobs, _most(max_crashes), frozenset(map(str, left or ())))
        return await self.store.write(lambda: claim_next.claim(wanted))

    async def _count_crashes(self, jobs: tuple[str, ...], most: dict[str, int], left: frozenset[str]) -> None:
        place = own_process.place()
        for holder in await self.store.read(lambda: crashes.holders(jobs, place)) if place else ():
            gone = holder.process not in left and own_process.gone(holder.pid, holder.started)
            if gone or not holder.leased:
                limit = most.get(holder.job, JOB_CRASHES_MAX)
                await self.store.write(partial(crashes.looked_at, holder, gone, limit))

    async def run_leaves(self, *, run: str, epoch: int, by: str | None = None) -> Json:
        """The worker was asked to stop, and will give the run back: should it be killed before, that is no crash."""
        run = await self._run(run)
        await self.store.write(lambda: claim_next.leaves(run, int(epoch)))
        return {"run": run}

    async def run_parked(self, *, limit: int = PARKED_SHOWN_MAX, by: str | None = None) -> list[Json]:
        """Runs of jobs that no worker takes before a person has done something: why, and what (`hint`)."""
        most = max(1, min(int(limit), PARKED_SHOWN_MAX))
        return await self.store.read(lambda: rows.parked(most))

    async def run_retry(
        self, *, run: str, why: str | None = None, by: str | None = None, request: str | None = None
    ) -> Json:
        """Try a failed run again, from its last step; for a worker, or whoever begins it by its id."""
        run, asked, reason = await self._run(run), request or ids.new("req_"), json_values.said(why, "the reason")
        return await self.store.write(lambda: rows.retry(run, by or self.by, asked, reason))

    async def run_park(self, *, run: str, epoch: int, key: str, by: str | None = None) -> Json:
        """A worker can do no more before this step is settled: the lease is given back until then."""
        run = await self._run(run)
        return await self.store.write(
            lambda: claim_next.park(run, epoch, check_word("a step's key", key), by or self.by)
        )


def _most(max_crashes: object) -> dict[str, int]:
    """How many workers may die at a run of each job."""
    given = max_crashes or {}
    if (
        not isinstance(given, dict)
        or len(given) > JOBS_MAX
        or not all(type(n) is int and n > 0 for n in given.values())
    ):
        raise invalid("max_crashes says for each job how many workers may die at it", "at least 1")
    return given
