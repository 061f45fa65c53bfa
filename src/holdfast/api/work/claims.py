"""Claims about the machine, with what was seen when each was made."""

from __future__ import annotations

from ..operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import ClaimResults, Json, Path, Word


class ClaimAdd(Operation["Json"], op="claim_add", right="work", on="own", repeat="request", durable="work"):
    """Keep a claim, with what was seen when it was made."""

    kind: Word
    spec: Json
    seen: Json
    task: Word | None = None
    run: Word | None = None
    host: Word | None = None
    project: Word | None = None
    cwd: Path | None = None
    request: Word | None = None


class ClaimLs(Operation["list[Json]"], op="claim_ls", right="work", on="own", repeat="always"):
    """Oldest first; of a task with those of its runs."""

    task: Word | None = None
    run: Word | None = None
    project: Word | None = None
    cwd: Path | None = None


class ClaimRm(Operation["Json"], op="claim_rm", right="work", on="own", repeat="request", durable="work"):
    """Forget a claim."""

    claim: Word
    request: Word | None = None


class ClaimChecked(Operation["Json"], op="claim_checked", right="work", on="own", repeat="always", durable="work"):
    """How a look ended: `[{"id", "state", "said", "evidence"}]`."""

    results: ClaimResults
