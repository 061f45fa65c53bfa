"""The calls for projects, tasks, policies and backends: part of `Work`, in a file of their own.

`task` is PROJECT/ID, or an ID of the current project: the one named by `project`, else the one whose root holds `cwd`,
else the only one.
"""

from __future__ import annotations

import os
from typing import Any

from ...model import ids
from ...model.errors import invalid
from ...model.limits import RUN_LEASE_S, TASKS_LISTED_MAX, WHY_MAX
from ...model.work import policy as policies
from ...model.work import task_contract as contracts
from ...model.work import task_states as words
from ...model.work.effects import check_word
from ...store.base import Store
from ...wire import json_values
from ..runs import lease
from ..runs import rows as runs
from ..runs.worker_process import check_process
from . import attempts, policy_rows, run_end, verification, views
from . import changes as task_changes
from . import rows as task_rows
from .rows import Asked

Json = dict[str, Any]


class TaskCalls:
    """Needs what `Work` has: `store`, `by`, `_run`."""

    store: Store
    by: str

    async def _run(self, run: str) -> str:
        raise NotImplementedError

    # -- projects ------------------------------------------------------------------------------------------------------

    async def project_init(
        self,
        *,
        name: str,
        root: str,
        phases: list[str] | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A project in a folder, with its phases in order; the same again is the one that is there."""
        words.check_id(name, "a project's name")
        where, asked = _root(root), self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.init(name, phases, where, asked))

    async def project_edit(
        self,
        *,
        project: str | None = None,
        cwd: str | None = None,
        phases: list[str] | None = None,
        root: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        name = await self._project(project, cwd)
        where, asked = None if root is None else _root(root), self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.edit_project(name, phases, where, asked))

    async def project_show(self, *, project: str | None = None, cwd: str | None = None, by: str | None = None) -> Json:
        """The project's state."""
        name = await self._project(project, cwd)
        return await self.store.read(lambda: views.state(name))

    async def project_ls(self, *, by: str | None = None) -> list[Json]:
        return await self.store.read(views.projects)

    # -- tasks ---------------------------------------------------------------------------------------------------------

    async def task_add(
        self,
        *,
        title: str,
        project: str | None = None,
        cwd: str | None = None,
        id: str | None = None,
        phase: str | None = None,
        contract: Json | None = None,
        after: list[str] | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """One more task; its contract is checked whole before anything is kept."""
        name = await self._project(project, cwd)
        body, listed = contracts.check({} if contract is None else contract, title=title)
        new = task_changes.New(
            None if id is None else words.check_id(id), phase, body, [*_names(after), *_names(listed)]
        )
        asked = self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.add(name, new, asked))

    async def task_contract(
        self,
        *,
        task: str,
        contract: Json | None = None,
        title: str | None = None,
        after: list[str] | None = None,
        phase: str | None = None,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A new version of the contract, other dependencies, another phase; what is not given stays."""
        key = await self._task(task, project, cwd)
        given: Any = {} if contract is None else contract
        before = (await self.store.read(lambda: views.contract(key, None)))["contract"]
        contracts.check(given, title=title, before=before)
        asked, needs = self._asked(by, request, why), None if after is None else _names(after)
        return await self.store.write(lambda: task_changes.edit(key, given, title, needs, phase, asked))

    async def task_show(
        self, *, task: str, project: str | None = None, cwd: str | None = None, by: str | None = None
    ) -> Json:
        """One task whole; of a blocked one this is the blocked report."""
        key = await self._task(task, project, cwd)
        return await self.store.read(lambda: views.show(key))

    async def task_report(
        self, *, task: str, project: str | None = None, cwd: str | None = None, by: str | None = None
    ) -> Json:
        return await self.task_show(task=task, project=project, cwd=cwd)

    async def task_versions(
        self,
        *,
        task: str,
        version: int | None = None,
        project: str | None = None,
        cwd: str | None = None,
        by: str | None = None,
    ) -> Json:
        """One version of a task's contract; the one in force without a number."""
        key = await self._task(task, project, cwd)
        return await self.store.read(lambda: views.contract(key, version))

    async def task_ls(
        self,
        *,
        project: str | None = None,
        cwd: str | None = None,
        status: str | None = None,
        phase: str | None = None,
        limit: int = TASKS_LISTED_MAX,
        after: str | None = None,
        by: str | None = None,
    ) -> list[Json]:
        """Tasks in the order in which they were added; `after` is the last one of the answer before."""
        if status is not None and status not in words.SHOWN:
            raise invalid(f"there is no status {str(status)[:40]!r}", "one of " + ", ".join(words.SHOWN))
        name, most = await self._project(project, cwd), max(1, min(int(limit), TASKS_LISTED_MAX))
        last = None if after is None else words.check_id(after)
        return await self.store.read(lambda: views.listing(name, status, phase, most, last))

    async def task_start(
        self,
        *,
        task: str,
        worker: str | None = None,
        backend: str | None = None,
        ttl_s: float = RUN_LEASE_S,
        take: bool = False,
        params: Json | None = None,
        items: list[str] | None = None,
        project: str | None = None,
        cwd: str | None = None,
        process: Json | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """An attempt with its run: leased where a worker is named, else by hand. An open one is gone on with."""
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        wanted = _wanted(asked, worker, process, ttl_s, params, items)
        return await self.store.write(lambda: attempts.start(key, wanted, backend, bool(take), asked))

    async def task_next(
        self,
        *,
        worker: str,
        project: str | None = None,
        cwd: str | None = None,
        ttl_s: float = RUN_LEASE_S,
        backends: list[str] | None = None,
        apart: bool = False,
        process: Json | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """A task that is ready, or that a dead worker left, leased; `run` is null when there is none, with when to
        look again. `apart`: none that would share files with an attempt under way; `held_back` names those.
        """
        name, asked = await self._project(project, cwd), self._asked(by, request, None)
        known = None if backends is None else _names(backends)
        wanted = _wanted(asked, check_word("a worker", worker), process, ttl_s, None, None)
        return await self.store.write(lambda: attempts.next_task(name, wanted, known, bool(apart), asked))

    async def task_check(
        self,
        *,
        task: str,
        run: str | None = None,
        epoch: int | None = None,
        project: str | None = None,
        cwd: str | None = None,
        by: str | None = None,
    ) -> Json:
        """What is to be verified before this task is done (`checks`, `root`); refused where it cannot be done now."""
        key, asked = await self._task(task, project, cwd), self._asked(by, None, None)
        return await self.store.write(lambda: attempts.may_finish(key, run, epoch, asked))

    async def task_verified(
        self,
        *,
        task: str,
        results: list[Json],
        run: str | None = None,
        epoch: int | None = None,
        project: str | None = None,
        cwd: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """What the verification said, kept with the attempt."""
        key, asked = await self._task(task, project, cwd), self._asked(by, request, None)
        found = verification.check_results(results)
        return await self.store.write(lambda: attempts.verified(key, run, epoch, found, asked))

    async def task_done(
        self,
        *,
        task: str,
        run: str | None = None,
        epoch: int | None = None,
        results: list[Json] | None = None,
        outcome: Any = None,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Accepted, only where the verification of the contract in force passed: as given here, or as recorded."""
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        found = None if results is None else verification.check_results(results)
        text = json_values.encode(outcome, "the outcome")
        return await self.store.write(lambda: attempts.done(key, run, epoch, found, text, asked))

    async def task_fail(
        self,
        *,
        task: str,
        run: str | None = None,
        epoch: int | None = None,
        classification: Json | None = None,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """The attempt failed. The task is tried again, or blocked with its report once that is no use."""
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.fail(key, run, epoch, classification, asked))

    async def task_block(
        self,
        *,
        task: str,
        epoch: int | None = None,
        classification: Json | None = None,
        question: str | None = None,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """It waits for a person, with a report; its run stays open and is gone on with later."""
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        asks = _why(question)
        return await self.store.write(lambda: task_changes.block(key, epoch, classification, asks, asked))

    async def task_unblock(
        self,
        *,
        task: str,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """Blocked or paused, it may be started again. The reason is an answer in its run's log."""
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.unblock(key, asked))

    async def task_pause(
        self,
        *,
        task: str,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.pause(key, asked))

    async def task_retry(
        self,
        *,
        task: str,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.retry(key, asked))

    async def task_cancel(
        self,
        *,
        task: str,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """No longer wanted: its runs end, its worker is fenced. `sessions` are what the caller is to stop."""
        key, asked = await self._task(task, project, cwd), self._asked(by, request, why)
        return await self.store.write(lambda: task_changes.cancel(key, asked))

    async def attempt_note(
        self,
        *,
        run: str,
        epoch: int | None = None,
        changes: Any = None,
        backend: str | None = None,
        classification: Json | None = None,
        by: str | None = None,
    ) -> Json:
        """What is known of an attempt besides its end."""
        run = await self._run(run)
        name = None if backend is None else words.check_id(backend, "a backend's name")
        return await self.store.write(lambda: run_end.note_attempt(run, epoch, changes, name, classification))

    # -- policies and backends -------------------------------------------------------------------------------------

    async def policy_set(
        self,
        *,
        policy: Json,
        project: str | None = None,
        cwd: str | None = None,
        why: str | None = None,
        by: str | None = None,
        request: str | None = None,
    ) -> Json:
        """The project's next policy; attempts that have begun keep theirs."""
        name, body, asked = await self._project(project, cwd), policies.check(policy), self._asked(by, request, why)
        return await self.store.write(lambda: policy_rows.set_policy(name, body, asked))

    async def policy_show(
        self, *, project: str | None = None, cwd: str | None = None, version: int | None = None, by: str | None = None
    ) -> Json:
        name = await self._project(project, cwd)
        return await self.store.read(lambda: policy_rows.show_policy(name, version))

    async def backend_add(
        self,
        *,
        name: str,
        template: list[str],
        env: dict[str, str] | None = None,
        timeout_s: float | None = None,
        terminal: bool = False,
        why: str | None = None,
        by: str | None = None,
    ) -> Json:
        """A command line that does tasks; the same name again replaces it."""
        body, asked = policies.check_backend(name, template, env, timeout_s, terminal), self._asked(by, None, why)
        return await self.store.write(lambda: policy_rows.add_backend(name, body, asked))

    async def backend_ls(self, *, by: str | None = None) -> list[Json]:
        return await self.store.read(policy_rows.backends)

    async def backend_rm(
        self, *, name: str, why: str | None = None, by: str | None = None, request: str | None = None
    ) -> Json:
        words.check_id(name, "a backend's name")
        asked = self._asked(by, request, why)
        return await self.store.write(lambda: policy_rows.remove_backend(name, asked))

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _asked(self, by: str | None, request: str | None, why: str | None) -> Asked:
        return Asked(by or self.by, request or ids.new("req_"), _why(why))

    async def _project(self, project: str | None, cwd: str | None) -> str:
        return await self.store.read(lambda: task_rows.find_project(project, cwd))

    async def _task(self, task: str, project: str | None, cwd: str | None) -> str:
        return await self.store.read(lambda: task_rows.find_key(task, project, cwd))

    async def _managed(self, task: str, project: str | None, cwd: str | None) -> str | None:
        return await self.store.read(lambda: task_rows.managed(task, project, cwd))


def _root(root: object) -> str:
    if not isinstance(root, str) or not os.path.isabs(root) or "\0" in root:
        raise invalid("a project's root is the whole path of a folder", f"not {str(root)[:80]!r}")
    return os.path.normpath(root)


def _names(found: object) -> list[str]:
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(n, str) for n in found):
        raise invalid("tasks and backends are named in a list", f"got {type(found).__name__}")
    return found


def _why(text: Any) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > WHY_MAX * 4:
        raise invalid(f"a reason is text of at most {WHY_MAX * 4:,} characters", "say it shorter")
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0") or None


def _wanted(
    asked: Asked, worker: str | None, process: Json | None, ttl_s: float, params: Json | None, items: list[str] | None
) -> runs.Wanted:
    if params is not None and not isinstance(params, dict):
        raise invalid("a run's params are a mapping of names to values", f"got {type(params).__name__}")
    return runs.Wanted(
        request=asked.request,
        task=None,
        run=None,
        params=None if params is None else json_values.encode(params, "the run's params"),
        items=None if items is None else json_values.encode(runs.check_items(items), "the run's items"),
        worker=None if worker is None else check_word("a worker", worker),
        ttl=lease.check_ttl(ttl_s),
        again=True,
        parent=None,
        by=asked.by,
        why=asked.why,
        process=check_process(process),
    )
