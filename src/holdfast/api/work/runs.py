"""Runs: begin, lease, claim, end; and what may be forgotten of them."""

from __future__ import annotations

from ..operation import Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Crashes, EndState, Jobs, Json, Path, Process, Seconds, Whole, Word


class BeginRun(
    Once["Json"], op="begin_run", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """A new run; or, of a task or by its id, the one that is there, taken over if its lease is free."""

    params: Json | None = None
    items: list[str] | None = None
    task: Word | None = None
    run: Word | None = None
    worker: Word | None = None
    ttl_s: Seconds = 30.0
    again: bool = False
    parent: Word | None = None
    job: Word | None = None
    project: Word | None = None
    cwd: Path | None = None
    process: Process | None = None


class RunClaim(
    Operation["Json"], op="run_claim", right="work", on="own", repeat="request", durable="work", changes=("parked",)
):
    """The next run of these jobs that is free, leased to this worker; `run` is null when there is none."""

    jobs: Jobs
    worker: Word
    ttl_s: Seconds = 30.0
    standby: bool = False
    max_crashes: Crashes | None = None
    left: list[str] | None = None
    process: Process | None = None
    request: Word | None = None


class LeaseRenew(
    Operation["Json"], op="lease_renew", right="work", on="own", repeat="always", durable="work", thread_ok=True
):
    """Hold a run for longer."""

    run: Word
    epoch: Whole
    ttl_s: Seconds = 30.0


class LeaseRelease(Operation["Json"], op="lease_release", right="work", on="own", repeat="always", durable="work"):
    """Give a run's lease back."""

    run: Word
    epoch: Whole


class RunLeaves(Operation["Json"], op="run_leaves", right="work", on="own", repeat="always", durable="work"):
    """The worker was asked to stop, and will give the run back: should it be killed before, that is no crash."""

    run: Word
    epoch: Whole


class RunPark(
    Operation["Json"], op="run_park", right="work", on="own", repeat="always", durable="work", changes=("parked",)
):
    """A worker can do no more before this step is settled: the lease is given back until then."""

    run: Word
    epoch: Whole
    key: Word


class RunRetry(
    Once["Json"], op="run_retry", right="work", on="own", repeat="request", durable="work", changes=("parked",)
):
    """Try a failed run again, from its last step."""

    run: Word


class RunEnd(
    Once["Json"], op="run_end", right="work", on="own", repeat="request", durable="work", changes=("tasks", "parked")
):
    """End a run."""

    run: Word
    epoch: Whole | None = None
    state: EndState = "done"
    outcome: object = None


class RunSession(Operation["Json"], op="run_session", right="work", on="own", repeat="always", durable="work"):
    """Note that this run uses a session, from this output offset on."""

    run: Word
    session: Word
    generation: Whole
    from_offset: Whole
    epoch: Whole | None = None


class RunStatus(Operation["Json"], op="run_status", right="work", on="own", repeat="always"):
    """Where it stands: which items are done, in doubt, pending; who holds it; what is to be settled."""

    run: Word


class RunLs(Operation["list[Json]"], op="run_ls", right="work", on="own", repeat="always"):
    """Runs, the latest first."""

    task: Word | None = None
    state: Word | None = None
    job: Word | None = None
    limit: Whole = 100
    project: Word | None = None
    cwd: Path | None = None


class RunParked(Operation["list[Json]"], op="run_parked", right="work", on="own", repeat="always"):
    """Runs of jobs that no worker takes before a person has done something: why, and what (`hint`)."""

    limit: Whole = 100


class WorkPrune(
    Operation["Json"],
    op="work_prune",
    right="work",
    on="own",
    also="stop",
    repeat="always",
    durable="work",
    changes=("tasks",),
):
    """Forget a batch of ended work of this age; asked again while `more`."""

    older_than_s: Seconds


class WorkUsage(Operation["Json"], op="work_usage", right="work", on="own", repeat="always"):
    """How much of everything there is, and the bytes of what can be large."""
