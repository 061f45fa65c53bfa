"""Steps of a run, and its log."""

from __future__ import annotations

from ..operation import Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Effect, Ended, Json, LogKind, Outcome, Seconds, Whole, Word


class StepBegin(
    Once["Json"],
    op="step_begin",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("log",),
    thread_ok=True,
):
    """The intent, on disk before its effect: `execute` it, `reuse` what is known, or it is `in_doubt`."""

    run: Word
    key: Word
    epoch: Whole | None = None
    effect: Effect = "unsafe"
    args: object = None
    action: Word | None = None
    idem_key: Word | None = None
    session: Word | None = None
    exec_id: Word | None = None


class StepEnd(
    Once["Json"],
    op="step_end",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("log",),
    thread_ok=True,
):
    """The outcome. A step without effect passes what it was (`effect`, `args`, `action`) here: one write in all."""

    run: Word
    key: Word
    epoch: Whole | None = None
    result: object = None
    effect: Effect | None = None
    args: object = None
    action: Word | None = None


class StepNext(
    Once["Json"],
    op="step_next",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("log",),
    thread_ok=True,
):
    """The outcome of one step (`ended`: its key, result and request) and the intent of the next, in one write."""

    run: Word
    ended: Ended
    key: Word
    epoch: Whole
    effect: Effect = "unsafe"
    args: object = None
    action: Word | None = None


class StepFail(
    Once["Json"],
    op="step_fail",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("log",),
    thread_ok=True,
):
    """It failed. `known`: nothing happened. `running`: its body has not ended."""

    run: Word
    key: Word
    epoch: Whole | None = None
    error: str = ""
    known: bool = True
    running: bool = False


class StepSettle(
    Operation["Json"],
    op="step_settle",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("log", "parked"),
):
    """Say what happened to a step in doubt: `done` (with its result), `not_done` or `failed` (it may run again)."""

    run: Word
    key: Word
    outcome: Outcome
    result: object = None
    evidence: str | None = None
    epoch: Whole | None = None
    request: Word | None = None


class StepAssign(Operation["Json"], op="step_assign", right="work", on="own", repeat="always", durable="work"):
    """Name who is to settle a step in doubt, and how soon by the database's clock."""

    run: Word
    key: Word
    owner: Word | None = None
    within_s: Seconds | None = None


class StepFind(Operation["Json | None"], op="step_find", right="work", on="own", repeat="always"):
    """One step, or null."""

    run: Word
    key: Word


class StepLs(Operation["list[Json]"], op="step_ls", right="work", on="own", repeat="always"):
    """The steps of a run, or those in one state."""

    run: Word
    state: Word | None = None


class LogAppend(
    Once["Json"],
    op="log_append",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("log",),
    thread_ok=True,
):
    """One more entry of the run's log. With an epoch it is the worker's; without, an operator's remark."""

    run: Word
    body: object
    kind: LogKind = "note"
    epoch: Whole | None = None
    step: Word | None = None


class LogRead(Operation["list[Json]"], op="log_read", right="work", on="own", repeat="always"):
    """Entries of a run's log, in order."""

    run: Word
    after: Whole = 0
    upto: Whole | None = None
    limit: Whole = 1000
