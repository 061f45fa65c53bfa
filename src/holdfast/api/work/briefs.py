"""What there is to know of a task or a run before going on with it, and what was done."""

from __future__ import annotations

from ..operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Json, Path, Seconds, Word


class BriefFacts(Operation["Json"], op="brief_facts", right="work", on="own", repeat="always"):
    """What the record knows of a task, a run, or, without a target, of the current project, or all under way."""

    target: Word | None = None
    project: Word | None = None
    cwd: Path | None = None


class Report(Operation["Json"], op="report", right="work", on="own", repeat="always"):
    """What was done between two moments (seconds since 1970): of a task, a project, the current one, or all."""

    project: Word | None = None
    task: Word | None = None
    since: Seconds | None = None
    until: Seconds | None = None
    everything: bool = False
    cwd: Path | None = None
