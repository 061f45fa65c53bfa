"""The calls behind `hold resume`: part of `Work`, in a file of their own. The client adds what the kernel says."""

from __future__ import annotations

from typing import Any

from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import BRIEF_LISTED
from ...model.work.run_state import text_of
from ...store.base import Query, Store, Transaction
from ..checkpoints.checkpoints import Checkpoints
from ..reports import rows as report_rows
from ..tasks import rows as task_rows
from . import rows as brief_rows

Json = dict[str, Any]


class BriefCalls:
    """Needs what `Work` has: `store`, `by`, `_run`, `checkpoints`."""

    store: Store
    by: str

    @property
    def checkpoints(self) -> Checkpoints:
        raise NotImplementedError

    async def _run(self, run: str) -> str:
        raise NotImplementedError

    async def brief_facts(
        self, *, target: str | None = None, project: str | None = None, cwd: str | None = None, by: str | None = None
    ) -> Json:
        """What the record knows of a task, a run, or, without a target, of the current project, or all under way.

        `focus` is the same of the task or run whose turn it is, where the target is neither.
        """
        if target is not None:
            key, run = await self._meant(target, project, cwd)
            return await self._of(key, run)
        try:
            name = await self.store.read(lambda: task_rows.find_project(project, cwd))
        except HoldfastError:
            if project is not None or await self.store.read(_has_projects):
                raise
            facts = await self.store.read(brief_rows.of_runs)
            focus = facts.pop("focus_run")
            return {**facts, "focus": await self._of(None, focus) if focus else None}
        facts = await self.store.read(lambda: brief_rows.of_project(name))
        focus = facts["focus"]
        return {**facts, "focus": await self._of(focus, None) if focus else None}

    async def report(
        self,
        *,
        project: str | None = None,
        task: str | None = None,
        since: float | None = None,
        until: float | None = None,
        everything: bool = False,
        cwd: str | None = None,
        by: str | None = None,
    ) -> Json:
        """What was done between two moments (seconds since 1970): of a task, a project, the current one, or all."""
        key = None if task is None else await self.store.read(lambda: task_rows.find_key(task, project, cwd))
        name = project
        if key is not None:
            name = key.rpartition("/")[0]
        elif project is not None:
            await self.store.read(lambda: task_rows.find_project(project, None))
        elif not everything and cwd is not None:
            name = await self.store.read(lambda: _current(cwd))
        if key is None and since is None:
            raise invalid("a report is of a time span", "--since 7d")
        moments = [None if t is None else int(float(t) * 1e6) for t in (since, until)]
        span = report_rows.Span(moments[0], moments[1], name, key)
        return await self.store.read(lambda: report_rows.gather(span))

    async def _meant(self, target: str, project: str | None, cwd: str | None) -> tuple[str | None, str | None]:
        """A task's key, or a run: by its id, or as the latest of a name that stands for itself."""
        if target.startswith("run_"):
            return None, await self._run(target)
        try:
            return await self.store.read(lambda: task_rows.find_key(target, project, cwd)), None
        except HoldfastError as e:
            latest = await self.store.read(lambda: _latest(target))
            if latest is not None:
                return None, latest
            if not await self.store.read(_has_projects):
                raise not_found(f"no task or run {target[:80]!r}", "hold task ls, hold work ls") from None
            raise e

    async def _of(self, key: str | None, run: str | None) -> Json:
        if key is not None:
            facts = await self.store.read(lambda: brief_rows.of_task(key))
        else:
            assert run is not None
            facts = await self.store.read(lambda: brief_rows.of_run(run))
        if facts["run"] is not None:
            await self._state(facts)
        return facts

    async def _state(self, facts: Json) -> None:
        """What the run's own checkpoint and log say: goal, constraints, plan, where it stopped."""
        run = facts["run"]["run"]
        state, _, _ = await self.checkpoints.state_at(run)
        if facts["goal"] is None and state.get("goal"):
            facts["goal"] = text_of(state["goal"])
        given = state.get("constraints")
        for constraint in given if isinstance(given, list) else [given] if given else []:
            if text_of(constraint) not in facts["constraints"]:
                facts["constraints"].append(text_of(constraint))
        facts["resume_point"] = state.get("resume_point")
        known = {p.get("text") for p in facts["paths_not_taken"]}
        paths = state.get("open_paths")
        for path in (paths if isinstance(paths, list) else [])[-BRIEF_LISTED:]:
            words = path.get("path") if isinstance(path, dict) else None
            told = {"text": words or text_of(path), "why": path.get("why") if isinstance(path, dict) else None}
            if told["text"] and told["text"] not in known:
                facts["paths_not_taken"].append({k: v for k, v in told.items() if v})
        plan = state.get("plan")
        if isinstance(plan, list) and plan:
            facts["plan"] = await self._plan(run, plan[:_PLAN_MAX], state.get("current_step"))

    async def _plan(self, run: str, plan: list[Any], current: Any) -> list[Json]:
        """Its entries with how they stand: by the step of the same key, else by the current position."""
        entries: list[Json] = []
        for entry in plan:
            about = entry if isinstance(entry, dict) else {"text": text_of(entry), "key": None}
            told = {k: about.get(k) for k in ("key", "command", "effect", "session")}
            told = {k: v for k, v in told.items() if isinstance(v, str)}
            text = about.get("text") or about.get("title") or about.get("key") or text_of(entry)
            key = told.get("key") or (entry if isinstance(entry, str) else None)
            entries.append({**told, "text": str(text), "key": key})
        keys = list(dict.fromkeys(e["key"] for e in entries if e["key"]))
        states = await self.store.read(lambda: brief_rows.plan_states(run, keys)) if keys else {}
        for n, entry in enumerate(entries):
            state = states.get(entry["key"] or "")
            passed = isinstance(current, int) and not isinstance(current, bool) and n < current
            entry["state"] = state or ("done" if passed else "pending")
            if isinstance(plan[n], str) and state is None:
                entry["key"] = None  # a plan in words: nobody said that this is a step's key
        return entries


_PLAN_MAX = 500  # entries of a plan that are looked up: one query's parameters


def _current(cwd: str) -> Transaction[str | None]:
    """The project of a folder; without one the report is of all work."""
    rows = yield Query("SELECT name, root FROM project")
    inside = [(len(str(root)), str(name)) for name, root in rows if (cwd + "/").startswith(str(root).rstrip("/") + "/")]
    return max(inside)[1] if inside else None


def _has_projects() -> Transaction[bool]:
    return bool((yield Query("SELECT 1 FROM project LIMIT 1")))


def _latest(task: str) -> Transaction[str | None]:
    rows = yield Query(
        "SELECT r.id FROM run r JOIN attempt a ON a.id = r.attempt WHERE a.task = ? AND r.forked_from IS NULL"
        " ORDER BY a.n DESC, r.created_at DESC LIMIT 1",
        (task,),
    )
    return str(rows[0][0]) if rows else None
