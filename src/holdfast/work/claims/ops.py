"""The calls about claims, and about what may be forgotten: part of `Work`. The kernel is asked by the client."""

from __future__ import annotations

from typing import Any

from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.limits import CLAIM_BYTES_MAX, CLAIMS_MAX
from ...model.work.effects import check_word
from ...store.base import Query, Store, Transaction
from ...wire import json_values
from ..runs import retention
from ..tasks import rows as task_rows
from . import rows as claim_rows
from . import rules

Json = dict[str, Any]


class ClaimCalls:
    """Needs what `Work` has: `store`, `by`, `_run`."""

    store: Store
    by: str

    async def _run(self, run: str) -> str:
        raise NotImplementedError

    async def claim_add(
        self,
        *,
        kind: str,
        spec: Json,
        seen: Json,
        task: str | None = None,
        run: str | None = None,
        host: str | None = None,
        project: str | None = None,
        cwd: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Keep what somebody believes, with what was seen when they said so."""
        if (task is None) == (run is None):
            raise invalid("a claim belongs to a task or to a run", "--task ID, or --run RUN")
        kind, spec, seen = rules.check(kind, spec, seen)
        new = claim_rows.New(
            id=ids.new("clm_"),
            task=None if task is None else await self._claimed_task(task, project, cwd),
            run=None if run is None else await self._run(run),
            kind=kind,
            spec=_short(spec, "what is claimed"),
            seen=_short(seen, "what was seen"),
            host=None if host is None else check_word("a host", host),
            by=by or self.by,
            request=request or ids.new("req_"),
        )
        return await self.store.write(lambda: claim_rows.add(new))

    async def claim_ls(
        self,
        *,
        task: str | None = None,
        run: str | None = None,
        project: str | None = None,
        cwd: str | None = None,
        by: str | None = None,
    ) -> list[Json]:
        """Oldest first; of a task with those of its runs."""
        whose = None if task is None else await self._claimed_task(task, project, cwd)
        of = None if run is None else await self._run(run)
        return await self.store.read(lambda: claim_rows.listing(whose, of))

    async def claim_rm(self, *, claim: str, by: str | None = None, request: str | None = None) -> Json:
        wanted, asked = check_word("a claim", claim), request or ids.new("req_")
        return await self.store.write(lambda: claim_rows.remove(wanted, asked))

    async def claim_checked(self, *, results: list[Json], by: str | None = None) -> Json:
        """How a look ended: `[{"id", "state", "said", "evidence"}]`."""
        if type(results) is not list or len(results) > CLAIMS_MAX:
            raise invalid(f"a look has at most {CLAIMS_MAX} results", "send them in parts")
        rows = []
        for result in results:
            if type(result) is not dict or result.get("state") not in rules.STATES:
                raise invalid(f"a claim is one of {', '.join(rules.STATES)}", "hold claim check")
            told = {"said": result.get("said"), "evidence": result.get("evidence")}
            if not isinstance(told["said"], str | None) or not isinstance(told["evidence"], dict | None):
                raise invalid("a result says so in words, with its evidence by name", "hold claim check")
            rows.append((check_word("a claim", result.get("id")), str(result["state"]), _short(told, "the evidence")))
        return await self.store.write(lambda: claim_rows.checked(rows, by or self.by))

    # -- retention ---------------------------------------------------------------------------------------------------

    async def work_prune(self, *, older_than_s: float, by: str | None = None) -> Json:
        """Forget a batch of ended work of this age; asked again while `more`."""
        if not 0 <= older_than_s < float("inf"):
            raise invalid("an age is a number of seconds, from 0 on", "30d")
        return await self.store.write(lambda: retention.prune(int(older_than_s * 1e6)))

    async def work_usage(self, *, by: str | None = None) -> Json:
        """How much of everything there is, and the bytes of what can be large."""
        return await self.store.read(retention.usage)

    async def _claimed_task(self, task: str, project: str | None, cwd: str | None) -> str:
        """The task's key; or a name that stands for itself, where a run was begun under it."""
        wanted = check_word("a task", task)
        return await self.store.read(lambda: _known_task(wanted, project, cwd))


def _known_task(task: str, project: str | None, cwd: str | None) -> Transaction[str]:
    try:
        return (yield from task_rows.find_key(task, project, cwd))
    except HoldfastError:
        if (yield Query("SELECT 1 FROM attempt WHERE task = ? LIMIT 1", (task,))):
            return task
        raise


def _short(value: Json, what: str) -> str:
    text = json_values.encode(value, what)
    if len(text) > CLAIM_BYTES_MAX:
        raise invalid(f"{what} has at most {CLAIM_BYTES_MAX:,} bytes", "claim less, or keep it as an artifact")
    return text
