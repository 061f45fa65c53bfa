"""The calls by which workers find their runs: part of `Work`, in a file of their own."""

from __future__ import annotations

from typing import Any

from ..model import ids
from ..model.errors import invalid
from ..model.limits import JOBS_MAX, RUN_LEASE_S
from ..model.work import check_word
from ..store.base import Store
from . import leases, runs, taking, values

Json = dict[str, Any]


class JobCalls:
    """Needs what `Work` has: `store`, `by`, `_run`."""

    store: Store
    by: str

    async def _run(self, run: str) -> str:
        raise NotImplementedError

    async def run_claim(
        self, *, jobs: list[str], worker: str, ttl_s: float = RUN_LEASE_S, standby: bool = False,
        by: str | None = None, request: str | None = None,
    ) -> Json:  # fmt: skip
        """The next run of these jobs that is free, leased to this worker; `run` is null when there is none."""
        if type(jobs) is not list or not 0 < len(jobs) <= JOBS_MAX:
            raise invalid(f"a worker knows 1 to {JOBS_MAX} jobs", "register them in a holdfast.Jobs()")
        wanted = taking.Claim(
            jobs=tuple(check_word("a job", job) for job in jobs),
            worker=check_word("a worker", worker),
            ttl=leases.check_ttl(ttl_s),
            standby=bool(standby),
            request=request or ids.new("req_"),
        )
        return await self.store.write(lambda: taking.claim(wanted))

    async def run_retry(
        self, *, run: str, why: str | None = None, by: str | None = None, request: str | None = None
    ) -> Json:
        """Try a failed run again, from its last step; for a worker, or whoever begins it by its id."""
        run, asked, reason = await self._run(run), request or ids.new("req_"), values.said(why, "the reason")
        return await self.store.write(lambda: runs.retry(run, by or self.by, asked, reason))

    async def run_park(self, *, run: str, epoch: int, key: str, by: str | None = None) -> Json:
        """A worker can do no more before this step is settled: the lease is given back until then."""
        run = await self._run(run)
        return await self.store.write(lambda: taking.park(run, epoch, check_word("a step's key", key), by or self.by))
