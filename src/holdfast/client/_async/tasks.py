"""Projects and tasks from Python: `host.work.tasks`. Thin: the rules are the work plane's. Made into tasks_sync.py.

A task is named by its id, of the current project (HOLDFAST_PROJECT, holdfast.toml, the folder), or as PROJECT/ID.
"""

from __future__ import annotations

import os

from ...model.errors import HoldfastError
from ...model.limits import RUN_LEASE_S
from ..current_project import context
from ..process import this_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .work import AsyncWork

    Json = dict[str, Any]


def folder(root: str | None) -> str:
    """A project's root as everybody will understand it."""
    return os.path.abspath(root or ".")


class AsyncTasks:
    """The tasks of a work plane."""

    def __init__(self, work: AsyncWork) -> None:
        self._work = work

    async def call(self, name: str, /, project: str | None = None, **args: Any) -> Any:
        """A call by its name, with the current project."""
        return await self._work.call(name, **context(project), **args)

    # -- projects ------------------------------------------------------------------------------------------------------

    async def init(
        self, name: str, phases: Sequence[str] = (), *, root: str | None = None, why: str | None = None
    ) -> Json:
        """A project in a folder (this one); the same again is the one that is there."""
        where = folder(root)
        made: Json = await self._work.call("project_init", name=name, phases=list(phases) or None, root=where, why=why)
        return made

    async def edit_project(
        self,
        project: str | None = None,
        *,
        phases: Sequence[str] | None = None,
        root: str | None = None,
        why: str | None = None,
    ) -> Json:
        """Other phases, or another folder; what is not given stays."""
        made: Json = await self.call(
            "project_edit",
            project,
            phases=None if phases is None else list(phases),
            root=None if root is None else folder(root),
            why=why,
        )
        return made

    async def projects(self) -> list[Json]:
        found: list[Json] = await self._work.call("project_ls")
        return found

    async def project(self, project: str | None = None) -> Json:
        """The project's state."""
        found: Json = await self.call("project_show", project)
        return found

    # -- tasks ---------------------------------------------------------------------------------------------------------

    async def add(
        self,
        title: str,
        *,
        id: str | None = None,
        phase: str | None = None,
        after: Sequence[str] = (),
        contract: Mapping[str, Any] | None = None,
        project: str | None = None,
        why: str | None = None,
    ) -> Json:
        made: Json = await self.call(
            "task_add",
            project,
            title=title,
            id=id,
            phase=phase,
            after=list(after),
            contract=None if contract is None else dict(contract),
            why=why,
        )
        return made

    async def edit(
        self,
        task: str,
        contract: Mapping[str, Any] | None = None,
        *,
        title: str | None = None,
        after: Sequence[str] | None = None,
        phase: str | None = None,
        project: str | None = None,
        why: str | None = None,
    ) -> Json:
        """A new version of its contract; what is not given stays."""
        made: Json = await self.call(
            "task_contract",
            project,
            task=task,
            contract=None if contract is None else dict(contract),
            title=title,
            after=None if after is None else list(after),
            phase=phase,
            why=why,
        )
        return made

    async def show(self, task: str, *, project: str | None = None) -> Json:
        """A task whole; of a blocked one this is the blocked report."""
        found: Json = await self.call("task_show", project, task=task)
        return found

    async def ls(
        self, *, status: str | None = None, phase: str | None = None, project: str | None = None
    ) -> list[Json]:
        """All of them, in the order in which they were added."""
        found: list[Json] = []
        last: str | None = None
        while page := await self.call("task_ls", project, status=status, phase=phase, after=last):
            found += page
            last = page[-1]["task_id"]
        return found

    async def start(
        self,
        task: str,
        *,
        worker: str | None = None,
        backend: str | None = None,
        lease: float = RUN_LEASE_S,
        take: bool = False,
        project: str | None = None,
        why: str | None = None,
        lasting: bool = True,
    ) -> Json:
        """Begin an attempt by hand, or, with a worker's name, under a lease; an open one is gone on with.

        A worker is this process. `lasting=False`, for commands: it is whoever has the name, and this process ends.
        """
        made: Json = await self.call(
            "task_start",
            project,
            task=task,
            worker=worker,
            backend=backend,
            ttl_s=lease,
            take=take,
            why=why,
            process=this_process() if worker and lasting else None,
        )
        return made

    async def next(
        self,
        *,
        worker: str,
        lease: float = RUN_LEASE_S,
        backends: Sequence[str] | None = None,
        project: str | None = None,
    ) -> Json:
        """A task that is ready, leased to this worker; `run` is None where there is none."""
        made: Json = await self.call(
            "task_next",
            project,
            worker=worker,
            ttl_s=lease,
            process=this_process(),
            backends=None if backends is None else list(backends),
        )
        return made

    async def verify(
        self,
        task: str,
        *,
        run: str | None = None,
        epoch: int | None = None,
        project: str | None = None,
        begun: Callable[[str], object] | None = None,
        why: str | None = None,
    ) -> list[Json]:
        """Run the task's verification and keep the results with its attempt; refused where it cannot be done now."""
        from .verification import verify

        about = await self.call("task_check", project, task=task, run=run, epoch=epoch)
        name = f"{about['project']}/{about['task_id']}"
        env = {"HOLDFAST_TASK": name, "HOLDFAST_PROJECT": about["project"]}
        if about["attempt"] is not None:
            env["HOLDFAST_RUN"] = about["run_id"]
        results = await verify(
            self._work._host,
            about["checks"],
            cwd=about["root"],
            name=about["task_id"],
            env=env,
            why=why,
            begun=begun,
            written_by=about["written_by"],
            run=about["run_id"] if about["attempt"] is not None else None,
            epoch=epoch,
        )
        if about["attempt"] is not None:
            await self._work.call("task_verified", task=name, run=about["run_id"], epoch=epoch, results=results)
        return results

    async def done(
        self,
        task: str,
        *,
        run: str | None = None,
        epoch: int | None = None,
        outcome: object = None,
        project: str | None = None,
        begun: Callable[[str], object] | None = None,
        why: str | None = None,
    ) -> Json:
        """Run its verification; accepted where that passes, else refused (`failed`) and left as it is."""
        results = await self.verify(task, run=run, epoch=epoch, project=project, begun=begun, why=why)
        made: Json = await self.call(
            "task_done", project, task=task, run=run, epoch=epoch, results=results, outcome=outcome, why=why
        )
        return {**made, "verification": results}

    async def fail(
        self,
        task: str,
        *,
        run: str | None = None,
        epoch: int | None = None,
        classification: Mapping[str, Any] | None = None,
        project: str | None = None,
        why: str | None = None,
    ) -> Json:
        """The attempt failed: the task is tried again, or blocked once that is no use."""
        given = None if classification is None else dict(classification)
        made: Json = await self.call(
            "task_fail", project, task=task, run=run, epoch=epoch, classification=given, why=why
        )
        return made

    async def block(
        self,
        task: str,
        *,
        question: str | None = None,
        classification: Mapping[str, Any] | None = None,
        epoch: int | None = None,
        project: str | None = None,
        why: str | None = None,
    ) -> Json:
        """It waits for a person; its run stays open."""
        given = None if classification is None else dict(classification)
        made: Json = await self.call(
            "task_block", project, task=task, question=question, classification=given, epoch=epoch, why=why
        )
        return made

    async def unblock(self, task: str, *, project: str | None = None, why: str | None = None) -> Json:
        made: Json = await self.call("task_unblock", project, task=task, why=why)
        return made

    async def pause(self, task: str, *, project: str | None = None, why: str | None = None) -> Json:
        made: Json = await self.call("task_pause", project, task=task, why=why)
        return made

    async def retry(self, task: str, *, project: str | None = None, why: str | None = None) -> Json:
        made: Json = await self.call("task_retry", project, task=task, why=why)
        return made

    async def cancel(self, task: str, *, project: str | None = None, why: str | None = None) -> Json:
        """No longer wanted: its worker is fenced, its runs end, and so does every session that they started.

        `stopped` are those; `left` are sessions that were there before the task, or are on another host.
        """
        made: Json = await self.call("task_cancel", project, task=task, why=why)
        stopped: list[str] = []
        left: list[Json] = []
        for used in made.pop("sessions"):
            try:
                if await self._end(used, why):
                    stopped.append(used["session"])
            except HoldfastError as e:
                left.append({"session": used["session"], "why": e.message})
        return {**made, "stopped": stopped, "left": left}

    async def _end(self, used: Json, why: str | None) -> bool:
        """End a session's whole tree if it is the task's own; whether there was something to end."""
        host = self._work._host
        status = await host.call("status", session=used["session"])
        if status["id"] != used["session"]:
            raise HoldfastError("conflict", "it is known by a name only, which may be somebody else's by now")
        if status["state"] != "live":
            return False
        if used["from_offset"] > 0 and status["created_at"] < used["attempt_began_at"]:
            raise HoldfastError("conflict", "it was there before the task, which only used it")
        await host.call("stop", session=status["id"], grace_s=None, why=why or "its task was cancelled")
        return True

    # -- policies and backends -----------------------------------------------------------------------------------------

    async def policy(self, *, version: int | None = None, project: str | None = None) -> Json:
        found: Json = await self.call("policy_show", project, version=version)
        return found

    async def set_policy(
        self, policy: Mapping[str, Any], *, project: str | None = None, why: str | None = None
    ) -> Json:
        made: Json = await self.call("policy_set", project, policy=dict(policy), why=why)
        return made

    async def backends(self) -> list[Json]:
        found: list[Json] = await self._work.call("backend_ls")
        return found

    async def add_backend(
        self,
        name: str,
        template: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        terminal: bool = False,
        why: str | None = None,
    ) -> Json:
        """A command line that does tasks; the same name again replaces it. On pipes it finds the brief on its stdin."""
        made: Json = await self._work.call(
            "backend_add",
            name=name,
            template=list(template),
            env=dict(env or {}),
            timeout_s=timeout_s,
            terminal=terminal,
            why=why,
        )
        return made

    async def remove_backend(self, name: str, *, why: str | None = None) -> Json:
        made: Json = await self._work.call("backend_rm", name=name, why=why)
        return made
