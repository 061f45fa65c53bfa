"""The types of work replies over HTTP: projects, tasks, attempts, runs."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]


class Project(msgspec.Struct, frozen=True):
    project_name: str
    root: str
    phases: list[str]
    active_phase: str | None
    tasks: int
    unfinished: int
    created_at: str


class TaskRef(msgspec.Struct, frozen=True):
    task_id: str
    status: str
    backend: str | None
    title: str
    phase: str


class ProjectState(msgspec.Struct, frozen=True):
    """A project's status."""

    project_name: str
    active_phase: str | None
    tasks: list[TaskRef]
    completed_phases: list[str]
    remaining_phases: list[str]
    phases: list[str]
    root: str
    counts: dict[str, int]
    policy_version: int | None
    created_at: str
    observed_at: str


class Task(msgspec.Struct, frozen=True):
    task_id: str
    project: str
    title: str
    status: str
    phase: str
    ready: bool
    backend: str | None
    waiting: int
    attempt_count: int
    run_id: str | None
    worker: str | None
    lease_until: str | None
    changed_at: str | None
    waits_for_cancelled: list[str] = []


class HeldBack(msgspec.Struct, frozen=True):
    """The active attempt that a task waits for, because its `scope` overlaps the other's (`overlaps`)."""

    task_id: str
    beside: str
    scope: str
    overlaps: str


class Check(msgspec.Struct, frozen=True):
    """A command that succeeds when the task is done: shell source, or words."""

    command: str | list[str]
    timeout_s: float | None = None


class Contract(msgspec.Struct, frozen=True):
    title: str
    goal: str
    constraints: list[str]
    acceptance: list[str]
    artifacts: list[str]
    scope: list[str]
    verification: list[Any]
    backend: str | None = None
    timeout_s: float | None = None


class ContractVersion(msgspec.Struct, frozen=True):
    version: int
    at: str
    by: str | None
    why: str | None


class Classification(msgspec.Struct, frozen=True):
    failure_type: str | None = None
    failure_detail: str | None = None
    suggested_focus: str | None = None
    convergence: str | None = None


class Attempt(msgspec.Struct, frozen=True):
    attempt: str
    n: int
    run_id: str | None
    worker: str | None
    backend: str | None
    outcome: str | None
    classification: Classification | None
    verification: Any
    changes: Any
    policy_version: int | None
    contract_version: int | None
    begun_at: str | None
    ended_at: str | None


class TaskEvent(msgspec.Struct, frozen=True):
    seq: int
    at: str
    by: str | None
    event: str
    status: str | None
    run_id: str | None
    why: str | None
    detail: Any


class SessionUse(msgspec.Struct, frozen=True):
    """A session that a run used, with the offset where its use began."""

    session: str
    generation: int
    from_offset: int


class InDoubt(msgspec.Struct, frozen=True):
    key: str
    run_id: str


class TaskWhole(Task, frozen=True):
    """A task with its contract, attempts and history; for a blocked task, the blocked report."""

    depends_on: list[str] = []
    waits_for: list[str] = []
    held_back: HeldBack | None = None
    needed_by: list[str] = []
    contract: Contract | None = None
    contract_version: int = 0
    contract_versions: list[ContractVersion] = []
    policy_version: int | None = None
    backends: list[str] = []
    checks: list[Check] = []
    root: str = ""
    epoch: int = 0
    classification: Classification | None = None
    why: str | None = None
    question: str | None = None
    blocked_by: str | None = None
    attempts: list[Attempt] = []
    sessions: list[SessionUse] = []
    in_doubt: list[InDoubt] = []
    events: list[TaskEvent] = []
    created_at: str | None = None
    ended_at: str | None = None
    observed_at: str | None = None


class ContractAt(msgspec.Struct, frozen=True):
    task_id: str
    version: int
    contract: Contract


class RunRef(msgspec.Struct, frozen=True):
    run: str
    task: str | None
    state: str
    n: int
    worker: str | None
    epoch: int
    lease_until: str | None
    created_at: str | None
    ended_at: str | None
    job: str | None = None


class Run(RunRef, frozen=True):
    """A run's status; `in_doubt` are steps that wait to be settled, with all known facts."""

    attempt: str | None = None
    params: Any = None
    parent: str | None = None
    forked_from: Any = None
    leased: bool = False
    outcome: Any = None
    steps: dict[str, int] = {}
    log_end: int = 0
    items: Any = None
    in_doubt: list[Json] = []
    waits_for: str | None = None
    crashes: int = 0
    parked: Any = None
    sessions: list[SessionUse] = []
    observed_at: str | None = None


class Entry(msgspec.Struct, frozen=True):
    """One entry of a run's log; `said` and `text` render it as text."""

    seq: int
    kind: str
    at: str
    by: str | None
    epoch: int
    step: str | None
    body: Any
    said: str
    text: str
    why: str | None


class History(msgspec.Struct, frozen=True):
    """Entries in order; continue with after=(the last seq). With at=, also the state at that point."""

    run: str
    entries: list[Entry]
    at: int | None = None
    hash: str | None = None
    state: Any = None


class Artifact(msgspec.Struct, frozen=True):
    run: str
    name: str
    sha256: str
    size: int
    media: str | None
    made_by: str | None
    sources: list[Any]
    at: str


class Checkpoint(msgspec.Struct, frozen=True):
    run: str
    seq: int
    log_upto: int
    at: str
    by: str | None
    epoch: int
    kind: str
    label: str | None
    base: int | None
    hash: str
    size: int
    stored: int
    state: Any = None


class Difference(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    key: str
    change: str
    from_: Any = None
    to: Any = None


class Compared(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    from_: Checkpoint
    to: Checkpoint
    changes: list[Difference]


class Next(msgspec.Struct, frozen=True):
    kind: str
    why: str | None = None
    command: list[str] | None = None
    run: str | None = None
    task: str | None = None


class Brief(msgspec.Struct, frozen=True):
    """Everything needed to continue; `text` is the same as Markdown."""

    of: str
    text: str
    next_action: Next
    sections: Json
    omitted: list[Any]
    tokens: int
    max_tokens: int
    observed_at: str
    project: str | None = None
    phase: str | None = None
    task: Json | None = None
    run: str | None = None
    run_state: str | None = None
    goal: str | None = None
    constraints: list[str] = []
    acceptance: list[str] = []
    counts: Json = {}


class Report(msgspec.Struct, frozen=True):
    """What was done between two times, by whom, with what result."""

    since: str | None
    until: str | None
    project: str | None
    task: str | None
    totals: Json
    people: list[Json]
    tasks: list[Json]
    runs: list[Json]
    omitted: Json
    observed_at: str
