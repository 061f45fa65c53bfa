"""Durable runs from Python: `host.work.run(…)`, `run.step(…)`. The one source; work_sync.py is made from it.

A step's intent is on disk before its function runs and its result after. Killed in between, the next worker finds it in
doubt: an idempotent one runs again under the same key, one with `verify` is looked at, the rest raise `StepInDoubt`
until somebody says what happened. A worker that lost its lease gets `Fenced`, and nothing it writes is kept.
"""

from __future__ import annotations

import os
import time

from ...api.operation import find
from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.limits import ARTIFACT_BYTES_MAX, BODY_WAIT_S, PIECE_BYTES, RUN_LEASE_BEATS, RUN_LEASE_S, STORE_WAIT_S
from ...model.work import store_setting
from ...model.work.effects import Fenced, WorkerStopping
from ...wire import host_requests
from .._io.async_heartbeat import AsyncBeat, sleep, still, twin, untwin
from ..current_project import context
from ..files import contract_files
from ..process import this_process
from ..run_replay import Place
from ..steps_under_way import others
from .checkpoints import AsyncRunState
from .resume import AsyncBriefs
from .steps import AsyncSteps
from .tasks import AsyncTasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Self

    from ...wire.host_requests import Codec
    from .host import AsyncHost, AsyncSession

    Json = dict[str, Any]

_NOTING = frozenset({"log_append", "memory_append", "memory_set", "checkpoint_restore"})  # one call is one note
_CONTRACTED = frozenset({"task_add", "task_contract"})  # calls that bring a contract
_STANDBY_PAUSE_S = 0.25  # how often a standby looks whether the lease is free: small beside any lease


class AsyncWork(AsyncBriefs):
    """The work plane of a host: its store is the home's setting, which no request names.

    Where HOLDFAST_STORE is set it has to be that store.
    """

    def __init__(self, host: AsyncHost) -> None:
        self._host = host
        self.tasks = AsyncTasks(self)
        self._compared = not any(os.environ.get(variable) for variable in store_setting.VARIABLES.values())

    async def _compare_store(self) -> None:
        """Refuse a variable that names another store or cache than the home uses."""
        used = await self._host.call("store")
        for name, variable in store_setting.VARIABLES.items():
            asked = os.environ.get(variable)
            if asked and (wrong := store_setting.mismatch(name, asked, used[name])) is not None:
                raise wrong
        self._compared = True

    async def call(self, name: str, /, **args: Any) -> Any:
        """One call of the work plane by its name; for what has no method of its own."""
        if name in _CONTRACTED and self._host.local_files:
            await self._possible(name, args)
        return await self.ask(name, args)

    async def ask(self, name: str, args: Json, codec: Codec = host_requests) -> Any:
        """`call`, for whoever knows how its arguments are written best."""
        kind = find(name)
        if kind is not None and kind.row.repeat == "request":
            args.setdefault("request", ids.new("req_"))
        if not self._compared:
            await self._compare_store()
        deadline = time.monotonic() + STORE_WAIT_S
        message = {"op": name, **args}
        while True:  # a host that dies again and again while it is asked is waited out, as a restarting server is
            try:
                return (await self._host.exchange(message, codec))[0]
            except HoldfastError as e:
                if e.code != "host_gone" or time.monotonic() >= deadline:
                    raise
            await sleep(_STANDBY_PAUSE_S)

    async def _possible(self, name: str, args: Json) -> None:
        """Refuse verification that could never pass, before it is sent: the host looks at no file that is named."""
        given = args.get("contract")
        if type(given) is not dict or not given.get("verification"):
            return
        where: Json = {k: args[k] for k in ("project", "cwd") if k in args}
        if name == "task_add":
            contract_files.check(given, args.get("title"), None, (await self.ask("project_show", where))["root"])
            return
        found = await self.ask("task_show", {"task": args.get("task"), **where})
        contract_files.check(given, args.get("title"), found["contract"], found["root"])

    async def run(
        self,
        *,
        task: str | None = None,
        params: Mapping[str, Any] | None = None,
        items: Sequence[str] | None = None,
        run: str | None = None,
        worker: str | None = None,
        lease: float = RUN_LEASE_S,
        wait: float | None = 0,
        again: bool = False,
    ) -> AsyncRun:
        """Begin a run and hold its lease; of a `task`, or by its id, go on with the one that is there.

        Held by another worker it is refused (`busy`) after `wait` seconds (None: wait on): that is what a standby does.
        """
        deadline = None if wait is None else time.monotonic() + wait
        name = worker or own_name()
        while True:
            try:
                made = await self.call(
                    "begin_run",
                    task=task,
                    params=None if params is None else dict(params),
                    items=None if items is None else list(items),
                    run=run,
                    worker=name,
                    ttl_s=lease,
                    again=again,
                    process=this_process(),
                    **({} if task is None else context()),
                )
            except HoldfastError as e:
                if e.code != "busy" or (deadline is not None and time.monotonic() >= deadline):
                    raise
                await sleep(_STANDBY_PAUSE_S)
                continue
            return await self.held(made, lease)

    async def held(self, made: Json, lease: float, *, job: bool = False) -> AsyncRun:
        """The run whose lease was just given, kept from now on; what its last worker ran in a session is settled.

        `job`: it is worked at from the beginning each time, so what it notes is written once for each place.
        """
        run = AsyncRun(self, made, lease, Place() if job else None)
        if run.in_doubt and run.state == "active":
            run.in_doubt = await self.settle_execs(run.id, run.epoch)
        return run

    async def submit(
        self,
        job: str,
        params: Mapping[str, Any] | None = None,
        items: Sequence[str] | None = None,
        *,
        task: str | None = None,
    ) -> str:
        """Have a worker do this (`hold worker MODULE:JOBS`); the run's id. Of a `task`, the one that is there."""
        made = await self.call(
            "begin_run",
            job=job,
            task=task,
            params=None if params is None else dict(params),
            items=None if items is None else list(items),
            **({} if task is None else context()),
        )
        return str(made["run"])

    async def retry(self, run: str, *, why: str | None = None) -> Json:
        """Have a failed run tried again, from its last step: by a worker if it is a job, else by whoever begins it."""
        told: Json = await self.call("run_retry", run=run, why=why)
        return told

    async def claim(
        self,
        jobs: Sequence[str],
        *,
        worker: str,
        lease: float,
        standby: bool = False,
        max_crashes: Mapping[str, int] | None = None,
        left: Sequence[str] = (),
    ) -> Json:
        """The next run of these jobs, leased to this worker; without one, `run` is None. What `hold worker` asks."""
        made: Json = await self.call(
            "run_claim",
            jobs=list(jobs),
            worker=worker,
            ttl_s=lease,
            standby=standby,
            process=this_process(),
            max_crashes=dict(max_crashes or {}),
            left=list(left),
        )
        return made

    async def runs(
        self, *, task: str | None = None, state: str | None = None, job: str | None = None, limit: int = 100
    ) -> list[Json]:
        """The newest runs first."""
        where = {} if task is None else context()
        found: list[Json] = await self.call("run_ls", task=task, state=state, job=job, limit=limit, **where)
        return found

    async def status(self, run: str) -> Json:
        """Where a run stands: items done, in doubt, pending; who holds it; what is to be settled."""
        found: Json = await self.call("run_status", run=run)
        return found

    async def settle(
        self, run: str, key: str, outcome: str, *, evidence: str | None = None, result: object = None
    ) -> None:
        """Say what happened to a step in doubt: `done` (with its result), `not_done` or `failed`."""
        await self.call("step_settle", run=run, key=key, outcome=outcome, evidence=evidence, result=result)

    async def artifact(self, run: str, name: str) -> bytes:
        """The content of an artifact, checked against its hash."""
        import base64
        import hashlib

        found = await self.call("artifact_find", run=run, name=name)
        sha256, parts = found["sha256"], list[bytes]()
        while (data := (await self.call("artifact_read", sha256=sha256, piece=len(parts)))["data"]) is not None:
            parts.append(base64.b64decode(data))
        content = b"".join(parts)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise HoldfastError("store_damaged", f"the content of {name!r} is not what was put", "restore a backup")
        return content

    async def put_artifact(
        self,
        run: str,
        name: str,
        content: bytes,
        *,
        media: str | None = None,
        sources: Sequence[str] = (),
        epoch: int | None = None,
        why: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Keep content under a name. Its pieces come first; it has the name when all of it is there."""
        import base64
        import hashlib

        if len(content) > ARTIFACT_BYTES_MAX:
            raise invalid(f"an artifact has at most {ARTIFACT_BYTES_MAX:,} bytes", f"{name!r} has {len(content):,}")
        sha256 = hashlib.sha256(content).hexdigest()
        small = base64.b64encode(content).decode() if len(content) <= PIECE_BYTES else None
        for n in range(0 if small is not None else -(-len(content) // PIECE_BYTES)):
            piece = content[n * PIECE_BYTES : (n + 1) * PIECE_BYTES]
            await self.call("artifact_piece", sha256=sha256, piece=n, data=base64.b64encode(piece).decode())
        put: Json = await self.call(
            "artifact_put",
            run=run,
            name=name,
            sha256=sha256,
            data=small,
            media=media,
            sources=list(sources),
            epoch=epoch,
            why=why,
            **({} if request is None else {"request": request}),
        )
        return put

    def beside(self) -> AsyncWork:
        """The same work plane for a heartbeat that runs beside the caller; `left` when it ends."""
        return AsyncWork(twin(self._host))

    def left(self) -> None:
        untwin(self._host)


class AsyncRun(AsyncRunState, AsyncSteps):
    """A run whose lease this process holds, renewed in the background. Use it with `with`, or `close` it."""

    def __init__(self, work: AsyncWork, made: Json, lease: float, place: Place | None = None) -> None:
        self._work, self._lease, self._place = work, lease, place
        self.id: str = made["run"]
        self.task: str | None = made["task"]
        self.attempt: int = made["n"]
        self.epoch: int = made["epoch"]
        self.worker: str = made["worker"]
        self.params: Json = made["params"]
        self.items: list[str] = made["items"] or []
        self.state: str = made["state"]  # a task that was finished before comes back as `done`
        self.resumed: bool = made["resumed"]
        self.in_doubt: list[str] = made["in_doubt"]
        self.leaving = False  # set by a worker that is to stop: no further step is begun
        self._unasked = {}
        self._beat: AsyncBeat | None = None
        if self.state == "active":
            beside, run, epoch = work.beside(), self.id, self.epoch

            async def renew() -> None:
                await beside.call("lease_renew", run=run, epoch=epoch, ttl_s=lease)

            self._beat = AsyncBeat(self, renew, lease / RUN_LEASE_BEATS, beside.left)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} epoch {self.epoch}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        """Ended as done; after an exception only the lease is given back, and the run can be resumed at once."""
        if error is None and self.state == "active":
            await self.finish()
        else:
            await self.close()

    async def exec(
        self,
        key: str,
        session: AsyncSession | str,
        *command: str,
        effect: str = "unsafe",
        timeout: float | None = None,
        why: str | None = None,
    ) -> Json:
        """A step that is a command in a session's shell; how it ended is known to the session's host, also after our
        death. The step's result: `exit_code`, `output` (its end), `exec_id`, `start`, `end`.
        """
        self._check()
        done = await self._work.exec(
            self.id, key, session, *command, effect=effect, timeout=timeout, why=why, epoch=self.epoch
        )
        if self._place is not None and done["state"] in ("exited", "shell_ended"):
            self._place.finished(key)
        return done

    async def log(self, body: object, *, kind: str = "message", step: str | None = None, why: str | None = None) -> int:
        """One more entry of the run's log; its number."""
        return int((await self._call("log_append", body=body, kind=kind, step=step, why=why))["seq"])

    async def note(self, text: str, *, kind: str = "note", why: str | None = None) -> int:
        """A decision, something learned, rejected, a question: for whoever goes on."""
        return await self.log(text, kind=kind, why=why)

    async def put(
        self,
        name: str,
        content: bytes | str,
        *,
        media: str | None = None,
        sources: Sequence[str] = (),
        why: str | None = None,
    ) -> Json:
        """Keep an artifact of this run."""
        self._check()
        raw = content.encode() if isinstance(content, str) else bytes(content)
        return await self._work.put_artifact(
            self.id, name, raw, media=media, sources=sources, epoch=self.epoch, why=why, **self._once()
        )

    async def get(self, name: str) -> bytes:
        return await self._work.artifact(self.id, name)

    async def status(self) -> Json:
        return await self._work.status(self.id)

    async def finish(self, outcome: object = None) -> None:
        """The run is done; refused while a step is in doubt."""
        await self._quieted()
        await self._call("run_end", state="done", outcome=outcome)
        self._stop("done")

    async def fail(self, outcome: object = None) -> None:
        """The run has failed; its task may be tried again."""
        await self._quieted()
        await self._call("run_end", state="failed", outcome=outcome)
        self._stop("failed")

    async def close(self) -> None:
        """Give the lease back, so that another worker can go on at once; a step under way is waited for first."""
        if self._beat is not None and self._beat.lost is None:
            try:
                await self._quieted()
            finally:
                self._stop(self.state)
            try:
                await self._work.call("lease_release", run=self.id, epoch=self.epoch)
            except HoldfastError:
                pass  # it runs out by itself

    async def _quieted(self) -> None:
        """Wait for steps of this run that this process still does; what takes too long is in doubt, and says so."""
        for step in await still(others(self.id), min(self._lease, BODY_WAIT_S)):
            where = f"process {os.getpid()} on {os.uname().nodename[:64]}"
            text = f"the run was closed while its body still ran, in {where}"
            try:
                await self._call("step_fail", key=step.about["key"], error=text, running=True)
            except HoldfastError:
                pass  # it has just ended, was never begun, or another worker is the writer now

    def check(self) -> None:
        """Raise `Fenced` if the lease is gone, `WorkerStopping` if the worker is to stop."""
        self._check()

    def ended(self, state: str) -> None:
        """It was ended by another call than ours (`task_done`): there is no lease left to keep."""
        self._stop(state)

    def _stop(self, state: str) -> None:
        self.state = state
        if self._beat is not None:
            self._beat.stop()
            self._beat = None

    def _check(self) -> None:
        if self._beat is not None and self._beat.lost is not None:
            raise Fenced(self._beat.lost.message, self._beat.lost.hint)
        if self.leaving:
            raise WorkerStopping

    def _once(self) -> Json:
        """The request id of this place in a job; elsewhere each call is another one."""
        return {} if self._place is None else self._place.once()

    async def _call(self, name: str, /, **args: Any) -> Any:
        if name in _NOTING:
            args |= self._once()
        return await self._work.call(name, run=self.id, epoch=self.epoch, **args)

    async def _step(self, name: str, args: Json) -> Any:
        from ...wire import quick

        args["run"], args["epoch"] = self.id, self.epoch
        answer = await self._work.ask(name, args, quick)
        if self._place is not None:
            self._place.heard(name, args, answer)
        return answer

    async def _located(self, sessions: object) -> object:
        return await self._work.located(sessions)

    async def _send(self, name: str, /, **args: Any) -> Any:
        return await self._work.call(name, **args)

    async def _call_read(self, name: str, /, **args: Any) -> Any:
        return await self._work.call(name, run=self.id, **args)


def own_name() -> str:
    """A worker's name that no other process has: where it runs, and which one it is."""
    return f"{os.uname().nodename[:64]}:{os.getpid()}:{ids.new('', 6)}"
