"""Tasks: what is to be done, its attempts, and how each ended."""

from __future__ import annotations

from ..operation import Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Json, Path, Process, Seconds, Whole, Word


class TaskAdd(
    Once["Json"], op="task_add", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """One more task; its contract is checked whole before anything is kept."""

    title: str
    project: Word | None = None
    cwd: Path | None = None
    id: Word | None = None
    phase: Word | None = None
    contract: Json | None = None
    after: list[str] | None = None


class TaskContract(
    Once["Json"],
    op="task_contract",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("tasks",),
    approve="contract",
):
    """A new version of the contract, other dependencies, another phase; what is not given stays."""

    task: Word
    contract: Json | None = None
    title: str | None = None
    after: list[str] | None = None
    phase: Word | None = None
    project: Word | None = None
    cwd: Path | None = None


class TaskStart(
    Once["Json"], op="task_start", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """An attempt with its run: leased where a worker is named, else by hand. An open one is gone on with."""

    task: Word
    worker: Word | None = None
    backend: Word | None = None
    ttl_s: Seconds = 30.0
    take: bool = False
    params: Json | None = None
    items: list[str] | None = None
    project: Word | None = None
    cwd: Path | None = None
    process: Process | None = None


class TaskNext(
    Operation["Json"], op="task_next", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """Lease a task that is ready, or that a dead worker left; `run` is null when there is none."""

    worker: Word
    project: Word | None = None
    cwd: Path | None = None
    ttl_s: Seconds = 30.0
    backends: list[str] | None = None
    apart: bool = False
    process: Process | None = None
    request: Word | None = None


class TaskCheck(Operation["Json"], op="task_check", right="work", on="own", repeat="always", durable="work"):
    """What is to be verified before this task is done (`checks`, `root`); refused where it cannot be done now."""

    task: Word
    run: Word | None = None
    epoch: Whole | None = None
    project: Word | None = None
    cwd: Path | None = None


class TaskVerified(
    Operation["Json"], op="task_verified", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """What the verification said, kept with the attempt."""

    task: Word
    results: list[Json]
    run: Word | None = None
    epoch: Whole | None = None
    project: Word | None = None
    cwd: Path | None = None
    request: Word | None = None


class TaskDone(
    Once["Json"], op="task_done", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """Accepted, only where the verification of the contract in force passed: as given here, or as recorded."""

    task: Word
    run: Word | None = None
    epoch: Whole | None = None
    results: list[Json] | None = None
    outcome: object = None
    project: Word | None = None
    cwd: Path | None = None


class TaskFail(
    Once["Json"], op="task_fail", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """The attempt failed. The task is tried again, or blocked with its report once that is no use."""

    task: Word
    run: Word | None = None
    epoch: Whole | None = None
    classification: Json | None = None
    project: Word | None = None
    cwd: Path | None = None


class TaskBlock(
    Once["Json"], op="task_block", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """It waits for a person, with a report; its run stays open and is gone on with later."""

    task: Word
    epoch: Whole | None = None
    classification: Json | None = None
    question: str | None = None
    project: Word | None = None
    cwd: Path | None = None


class TaskUnblock(
    Once["Json"], op="task_unblock", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """Blocked or paused, it may be started again. The reason is an answer in its run's log."""

    task: Word
    project: Word | None = None
    cwd: Path | None = None


class TaskPause(
    Once["Json"], op="task_pause", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """Start no attempt of it until it is unblocked."""

    task: Word
    project: Word | None = None
    cwd: Path | None = None


class TaskRetry(
    Once["Json"], op="task_retry", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """Try a blocked or failed task again."""

    task: Word
    project: Word | None = None
    cwd: Path | None = None


class TaskCancel(
    Once["Json"],
    op="task_cancel",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("tasks", "parked"),
):
    """No longer wanted: its runs end, its worker is fenced. `sessions` are what the caller is to stop."""

    task: Word
    project: Word | None = None
    cwd: Path | None = None


class TaskShow(Operation["Json"], op="task_show", right="work", on="own", repeat="always"):
    """One task whole; of a blocked one this is the blocked report."""

    task: Word
    project: Word | None = None
    cwd: Path | None = None


class TaskReport(Operation["Json"], op="task_report", right="work", on="own", repeat="always"):
    """The same as task_show."""

    task: Word
    project: Word | None = None
    cwd: Path | None = None


class TaskVersions(Operation["Json"], op="task_versions", right="work", on="own", repeat="always"):
    """One version of a task's contract; the one in force without a number."""

    task: Word
    version: Whole | None = None
    project: Word | None = None
    cwd: Path | None = None


class TaskLs(Operation["list[Json]"], op="task_ls", right="work", on="own", repeat="always"):
    """Tasks in the order in which they were added; `after` is the last one of the answer before."""

    project: Word | None = None
    cwd: Path | None = None
    status: Word | None = None
    phase: Word | None = None
    limit: Whole = 10000
    after: Word | None = None


class AttemptNote(Operation["Json"], op="attempt_note", right="work", on="own", repeat="always", durable="work"):
    """What is known of an attempt besides its end."""

    run: Word
    epoch: Whole | None = None
    changes: object = None
    backend: Word | None = None
    classification: Json | None = None
