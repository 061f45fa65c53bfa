"""Checkpoints of a run's state, and what was at a position of its log."""

from __future__ import annotations

from ..operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Base64, Json, Sha256, Whole, Word


class CheckpointSave(Operation["Json"], op="checkpoint_save", right="work", on="own", repeat="request", durable="work"):
    """A milestone: the run's state with these fields set; `replace`: only these."""

    run: Word
    state: Json | None = None
    replace: bool = False
    label: Word | None = None
    sent: Sha256 | None = None
    locked: bool = False
    epoch: Whole | None = None
    request: Word | None = None


class CheckpointPut(Operation["Json"], op="checkpoint_put", right="work", on="own", repeat="request", durable="work"):
    """A milestone whose change the client has worked out; refused (`conflict`) if the log went on meanwhile."""

    run: Word
    hash: Sha256
    size: Whole
    log_upto: Whole
    record: Base64 = ""
    sent: Sha256 | None = None
    base: Whole | None = None
    base_hash: Word = ""
    label: Word | None = None
    epoch: Whole | None = None
    request: Word | None = None


class CheckpointMade(Operation["Json | None"], op="checkpoint_made", right="work", on="own", repeat="always"):
    """The one that this very request saved before, without its state; or null."""

    run: Word
    request: Word


class CheckpointRecords(Operation["Json"], op="checkpoint_records", right="work", on="own", repeat="always"):
    """A checkpoint without its state: the records it is made of, oldest first."""

    run: Word
    seq: Whole | None = None


class CheckpointPart(Operation["Json"], op="checkpoint_part", right="work", on="own", repeat="always"):
    """A piece of one record, base64."""

    run: Word
    seq: Whole
    piece: Whole


class CheckpointLs(Operation["list[Json]"], op="checkpoint_ls", right="work", on="own", repeat="always"):
    """The latest ones, oldest first."""

    run: Word
    limit: Whole = 1000


class CheckpointShow(Operation["Json"], op="checkpoint_show", right="work", on="own", repeat="always"):
    """One with its state; the latest without a number. A state over `at_most` bytes is left out (null)."""

    run: Word
    seq: Whole | None = None
    at_most: Whole | None = None


class CheckpointDiff(Operation["Json"], op="checkpoint_diff", right="work", on="own", repeat="always"):
    """From one to another; of the same run unless said otherwise."""

    run: Word
    seq: Whole
    other: Whole | None = None
    other_run: Word | None = None


class CheckpointRestore(
    Operation["Json"], op="checkpoint_restore", right="work", on="own", repeat="request", durable="work"
):
    """Its state is the run's state again: a new checkpoint, and nothing that was done is undone."""

    run: Word
    seq: Whole
    at_most: Whole | None = None
    epoch: Whole | None = None
    request: Word | None = None


class CheckpointFork(Operation["Json"], op="checkpoint_fork", right="work", on="own", repeat="request", durable="work"):
    """A new run that begins where this checkpoint stands."""

    run: Word
    seq: Whole | None = None
    label: Word | None = None
    request: Word | None = None


class CheckpointPolicy(
    Operation["Json"], op="checkpoint_policy", right="work", on="own", repeat="always", durable="work"
):
    """Save from the log every so many entries or bytes; 0 switches a measure off."""

    run: Word
    entries: Whole
    size: Whole


class SessionCheckpoints(Operation["list[Json]"], op="session_checkpoints", right="work", on="own", repeat="always"):
    """Checkpoints of the runs that used a session, made since they did; the latest ones, oldest first."""

    session: Word


class StateAt(Operation["Json"], op="state_at", right="work", on="own", repeat="always"):
    """The state at a position of the log, rebuilt; nothing is executed. Over `at_most` bytes it is left out."""

    run: Word
    position: Whole | None = None
    at_most: Whole | None = None


class History(Operation["Json"], op="history", right="work", on="own", repeat="always"):
    """What was thought, done and seen, in order; with `at` the state then, too."""

    run: Word
    at: Whole | None = None
    after: Whole = 0
    limit: Whole = 1000
