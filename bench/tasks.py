"""A large project: how long `resume`, `task ls` and `project show` take inside the process that has the store open."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.store.base import Query, Transaction
from holdfast.store.open import open_store
from holdfast.work.briefs import budget, next_action
from holdfast.work.service import Work

from .result import Result, Target, spread

KEY = "tasks"
_PROJECT, _PHASES = "large", ["plan", "build", "check", "ship"]
_LIMIT_MS = 100.0
_ROWS = 200  # of one INSERT: PostgreSQL takes 65,535 parameters
_STEPS = 10  # of each attempt
_DONE, _ACTIVE, _BLOCKED = 0.6, 0.02, 0.01  # parts of the tasks in these states; the rest is pending


def measure(quick: bool) -> list[Result]:
    tasks, rounds = (1000, 5) if quick else (10_000, 20)
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as folder:
        return asyncio.run(_measure(f"sqlite:///{folder}/work.db", "SQLite", tasks, rounds)) + _postgres(tasks, rounds)


def _postgres(tasks: int, rounds: int) -> list[Result]:
    from tests.support.postgres import Server

    server = Server()
    try:
        return asyncio.run(_measure(server.url(), "PostgreSQL", tasks, rounds))
    finally:
        server.close()


async def _measure(url: str, store: str, tasks: int, rounds: int) -> list[Result]:
    opened = await open_store(url)
    work = Work(opened, "bench")
    try:
        await work.project_init(name=_PROJECT, root="/tmp", phases=_PHASES)
        for batch in range(0, tasks, 500):
            await opened.write(lambda at=batch: _fill(at, min(at + 500, tasks), tasks))  # type: ignore[misc]
        await opened.write(_analyze)  # what PostgreSQL does by itself a minute after so many rows
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "resume of the project": lambda: _resume(work, None),
            "resume of a task": lambda: _resume(work, f"{_PROJECT}/{int(tasks * _DONE) + 1}"),
            "task ls, all": lambda: work.task_ls(project=_PROJECT),
            "task ls, ready": lambda: work.task_ls(project=_PROJECT, status="ready"),
            "project show": lambda: work.project_show(project=_PROJECT),
        }
        return [await _one(name, call, store, tasks, rounds) for name, call in calls.items()]
    finally:
        await work.aclose()
        await opened.close()


async def _one(name: str, call: Callable[[], Awaitable[Any]], store: str, tasks: int, rounds: int) -> Result:
    times, worked = [], []
    for _ in range(rounds + 2):
        began, processor = time.perf_counter(), time.process_time()
        await call()
        times.append((time.perf_counter() - began) * 1000)
        worked.append((time.process_time() - processor) * 1000)
    times, worked = times[2:], worked[2:]  # the first ones fill caches
    nice = f", at nice {os.nice(0)}" if os.nice(0) else ""
    median = statistics.median(times)
    return Result(
        key=f"{KEY}-{store}-{name}".lower().replace(" ", "-").replace(",", ""),
        name=f"`{name}`, {tasks:,} tasks and {tasks * _STEPS:,} steps, {store}",
        unit="ms",
        ours=median,
        targets=(Target("inside the process", median, _LIMIT_MS, "lower", "ms"),),
        notes=(
            f"{rounds} calls of the work plane in one process{nice}: {spread(times)}",
            f"processor time of that process: {spread(worked)}",
        ),
    )


async def _resume(work: Work, target: str | None) -> Any:
    """The store's part and the brief; what the kernel is asked on top depends on the sessions, not on the project."""
    facts = await work.brief_facts(target=target, project=_PROJECT)
    focus = facts.pop("focus", None)
    if focus is not None:
        facts |= {k: focus[k] for k in ("goal", "constraints", "acceptance", "task", "run")}
        facts["next_action"] = next_action.decide(focus)
    return budget.build(facts, 4000)


# -- the project, written in bulk ----------------------------------------------------------------------------------


def _analyze() -> Transaction[None]:
    yield Query("ANALYZE")


def _status(n: int, of: int) -> str:
    part = n / of
    if part < _DONE:
        return "done"
    if part < _DONE + _ACTIVE:
        return "active"
    return "blocked" if part < _DONE + _ACTIVE + _BLOCKED else "pending"


def _fill(first: int, end: int, of: int) -> Transaction[None]:
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in _COLUMNS}
    for n in range(first, end):
        _add(rows, n, _status(n, of))
    for table, columns in _COLUMNS.items():
        names = columns.split()
        for at in range(0, len(rows[table]), _ROWS):
            part = rows[table][at : at + _ROWS]
            marks = ", ".join(["(" + ", ".join("?" * len(names)) + ")"] * len(part))
            values = tuple(value for row in part for value in row)
            yield Query(f"INSERT INTO {table} ({', '.join(names)}) VALUES {marks}", values)
    yield Query("UPDATE project SET tasks = ?, given = ?, active_phase = 'build' WHERE name = ?", (end, end, _PROJECT))


_COLUMNS = {
    "attempt": "id task n worker epoch lease_until request backend outcome created_at ended_at policy_version"
    " contract_version",
    "run": "id attempt state params request created_at ended_at",
    "task": "key project id n title phase status contract waiting attempts spent retry_at attempt run backend taken_by"
    " report created_at changed_at ended_at",
    "contract": "task version at by_whom body",
    "step": "run key state effect args_hash idem_key epoch tries begin_request begun_at ended_at result",
    "log": "run seq kind at by_whom epoch step body",
    "task_event": "task seq at by_whom event status run request",
}


def _add(rows: dict[str, list[tuple[Any, ...]]], n: int, status: str) -> None:
    key, at = f"{_PROJECT}/{n + 1}", 1_760_000_000_000_000 + n * 1_000_000
    attempt, run = f"att_{n:016}", f"run_{n:016}"
    ended = at + 500_000 if status == "done" else None
    report = json.dumps({"why": "the tests fail", "by": "bench"}) if status == "blocked" else None
    phase = "plan" if status == "done" else "build"
    rows["task"].append(
        (
            key,
            _PROJECT,
            str(n + 1),
            n + 1,
            f"Task number {n + 1} of a large project",
            phase,
            status,
            1,
            0,
            1,
            0,
            0,
            attempt,
            run,
            "codex",
            "bench" if status == "active" else None,
            report,
            at,
            at,
            ended,
        )
    )
    body = {
        "title": f"Task {n + 1}",
        "goal": f"the thing number {n + 1} works",
        "scope": ["**"],
        "constraints": ["no new dependency"],
        "acceptance": [],
        "artifacts": [],
        "verification": [{"command": "true", "timeout_s": 60.0}],
        "backend": None,
        "timeout_s": None,
    }
    rows["contract"].append((key, 1, at, "bench", json.dumps(body)))
    outcome = "done" if status == "done" else None
    rows["attempt"].append((attempt, key, 1, None, 0, 0, f"req_a{n}", "codex", outcome, at, ended, 0, 1))
    rows["run"].append((run, attempt, outcome or "active", "{}", f"req_r{n}", at, ended))
    rows["task_event"].append((key, 1, at, "bench", "add", "pending", None, f"req_e{n}"))
    for k in range(_STEPS):
        state = "in_doubt" if status == "active" and k == _STEPS - 1 and n % 10 == 0 else "done"
        step = f"do:{k}"
        about = (run, step, state, "unsafe", "0" * 64, f"{run}:{k}", 1, 1, f"req_s{n}.{k}", at, at + 1, "1")
        rows["step"].append(about)
        kind = "decision" if k == 0 else "observation"
        rows["log"].append((run, k + 1, kind, at, "bench", 1, step, json.dumps({"text": f"did {k}"})))
