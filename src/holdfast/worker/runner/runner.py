"""The runner: claims ready tasks and those of dead runners, and runs their attempts in parallel.

Every slot is a worker with its own name and holds one task at a time. On a stop request the runner releases its leases
and leaves the sessions running; the next runner adopts them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from typing import Any

from ...client._async.host import AsyncHost
from ...client._async.work import own_name
from ...client.current_project import context
from ...client.process import this_process
from ...model.errors import HoldfastError
from ...model.limits import WORKER_LOOK_S
from ..telling import Telling
from .attempt import Attempt, Context
from .file_evidence import sweep

Json = dict[str, Any]
_LEAST_PAUSE_S = 0.05  # a lease that is about to expire is checked again, but not in a busy loop
_TRIES_MAX = 3  # of one attempt that fails for the runner's own reasons: then a person is asked
_BACKOFF_S = 1.0  # before such a retry, growing with their number
_FATAL = frozenset(
    {"host_gone", "store_unreachable", "store_full", "store_readonly", "store_denied", "store_damaged", "store_newer"}
)


class Runner:
    """`run()` works until a stop request, or with `once` until no task is left that it can do."""

    def __init__(
        self,
        tell: Telling,
        *,
        project: str | None,
        lease: float | None,
        parallel: int = 1,
        once: bool = False,
        name: str | None = None,
        acts_as: str | None = None,
    ) -> None:
        self._tell, self._wanted, self._lease, self._parallel, self._once = tell, project, lease, parallel, once
        self.name, self._acts_as = name or own_name(), acts_as
        self._leaving = asyncio.Event()
        self._signal = 0
        self._busy = 0
        self._listening: asyncio.Task[None] | None = None
        self._tries: dict[str, int] = {}
        self._sessions: dict[str, str] = {}
        self._changed = asyncio.Event()  # a slot has finished something: what waited for it may be ready now
        self._counts: Json = {}
        self._never: list[Json] = []  # tasks that wait for one that was cancelled
        self._held_back: set[tuple[str, str]] = set()  # reported: a task, and the one that it waits for

    async def run(self) -> int:
        """The process's exit status: 1 if `once` left tasks that wait for a person, or for a cancelled task."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop, number)
        async with AsyncHost() as host:
            about = await host.work.call("project_show", **context(self._wanted))
            self._project = str(about["project_name"])
            if self._lease is None:
                self._lease = float((await host.work.call("policy_show", project=self._project))["policy"]["lease_s"])
            self._tell("ready", runner=self.name, project=self._project)
            await sweep(host)
            shared = Context(host, self._tell, self._leaving, dict(os.environ), self._sessions, self._acts_as)
            await self._slots(shared)
        if self._once and not self._leaving.is_set():
            told = ", ".join(f"{n} {status}" for status, n in self._counts.items()) or "no tasks"
            for one in self._never:
                self._tell(
                    "never_ready",
                    task=f"{self._project}/{one['task_id']}",
                    waits_for=f"{self._project}/{one['waits_for']}",
                )
            self._tell("idle", counts=told)
        self._tell("stopped", runner=self.name)
        if self._signal == signal.SIGINT:
            return 130
        left = self._counts.get("blocked") or self._counts.get("failed") or self._never
        return 1 if self._once and left else 0

    def _stop(self, number: int) -> None:
        """Stop at the next step; at the second request at once: the leases then expire."""
        if self._leaving.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self._signal = number
        self._leaving.set()
        self._changed.set()

    async def _slots(self, shared: Context) -> None:
        names = [self.name if n == 1 else f"{self.name}#{n}" for n in range(1, self._parallel + 1)]
        slots = [asyncio.create_task(self._slot(shared, name)) for name in names]
        try:
            await asyncio.gather(*slots)
        except BaseException:
            self._leaving.set()  # one of them cannot continue: the others release their tasks
            self._changed.set()
            await asyncio.gather(*slots, return_exceptions=True)
            raise

    async def _slot(self, shared: Context, worker: str) -> None:
        assert self._lease is not None
        while not self._leaving.is_set():
            self._changed.clear()
            made = await shared.host.work.call(
                "task_next", worker=worker, project=self._project, ttl_s=self._lease, apart=True, process=this_process()
            )
            if made["run"] is not None:
                await self._occupied(shared, made)
                continue
            self._counts, self._never = made["counts"], made["never_ready"]
            self._tell_held_back(made["held_back"])
            if self._once and made["next_in_s"] is None and not self._busy:
                self._changed.set()  # for the slots that have stopped looking
                return
            left = WORKER_LOOK_S if made["next_in_s"] is None else made["next_in_s"]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), max(_LEAST_PAUSE_S, min(WORKER_LOOK_S, left)))

    def _tell_held_back(self, found: list[Json]) -> None:
        """Report each pair of tasks once."""
        now = {(one["task_id"], one["beside"]) for one in found}
        for one in found:
            if (one["task_id"], one["beside"]) not in self._held_back:
                names = {k: f"{self._project}/{one[v]}" for k, v in (("task", "task_id"), ("beside", "beside"))}
                self._tell("held_back", **names, scope=one["scope"], overlaps=one["overlaps"])
        self._held_back = now

    async def _occupied(self, shared: Context, made: Json) -> None:
        """Follow the inbox while an attempt runs, so that the host detects prompts."""
        if not self._busy:
            self._listening = asyncio.create_task(self._listen(shared.host))
        self._busy += 1
        try:
            await self._attempt(shared, made)
        finally:
            self._busy -= 1
            self._changed.set()
            if not self._busy and self._listening is not None:
                self._listening.cancel()
                await asyncio.gather(self._listening, return_exceptions=True)

    async def _attempt(self, shared: Context, made: Json) -> None:
        assert self._lease is not None
        run = await shared.host.work.held(made, self._lease)
        attempt = Attempt(shared, made, run)
        try:
            await attempt.live()
            self._tries.pop(run.id, None)
        except HoldfastError as e:
            await run.close()
            if e.code in _FATAL:
                raise
            await self._trouble(shared.host, attempt, e)
        except Exception as e:  # noqa: BLE001 - an unexpected error in one task must not end the others
            traceback.print_exc(file=sys.stderr)
            await run.close()
            await self._trouble(shared.host, attempt, HoldfastError("internal", f"internal error: {e!r}"[:300]))
        except BaseException:
            await run.close()
            raise

    async def _trouble(self, host: AsyncHost, attempt: Attempt, error: HoldfastError) -> None:
        """Handle a failure that is not the backend's: retry a few times, then ask a person."""
        tries = self._tries[attempt.run.id] = self._tries.get(attempt.run.id, 0) + 1
        self._tell("error", task=attempt.task, message=error.line())
        if tries >= _TRIES_MAX:
            found = {
                "failure_type": "unknown",
                "failure_detail": error.line()[:300],
                "suggested_focus": "the runner failed; read its error, then retry",
            }
            with contextlib.suppress(HoldfastError):
                await host.work.call("task_block", task=attempt.task, classification=found, why=error.line()[:500])
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._leaving.wait(), _BACKOFF_S * tries)

    async def _listen(self, host: AsyncHost) -> None:
        """Report when a backend asks a question, which waits in the inbox for a person."""
        told: set[str] = set()
        while True:
            with contextlib.suppress(HoldfastError):
                async for item in host.follow_inbox_raw():
                    task = self._sessions.get(str(item.get("session")))
                    if task is not None and item["state"] == "open" and item["id"] not in told:
                        told.add(item["id"])
                        text = str(item.get("text") or item.get("prompt") or "")[:200]
                        self._tell(
                            "asks",
                            task=task,
                            session=item.get("session_name") or item["session"],
                            ask=item["id"],
                            text=text,
                            kind=item["kind"],
                        )
            await asyncio.sleep(WORKER_LOOK_S)


async def runner(options: Json) -> int:
    made = Runner(
        Telling(bool(options.get("json"))),
        project=options.get("project"),
        lease=options.get("lease"),
        parallel=int(options.get("parallel") or 1),
        once=bool(options.get("once")),
        name=options.get("name"),
        acts_as=options.get("acts_as"),
    )
    return await made.run()
