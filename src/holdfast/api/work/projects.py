"""Projects with their phases, policies and backends."""

from __future__ import annotations

from ..operation import Act, Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Json, Path, Seconds, Variables, Whole, Word


class ProjectInit(
    Once["Json"], op="project_init", right="work", on="own", repeat="request", durable="work", changes=("tasks",)
):
    """A project in a folder, with its phases in order; the same again is the one that is there."""

    name: Word
    root: Path
    phases: list[str] | None = None


class ProjectEdit(
    Once["Json"],
    op="project_edit",
    right="work",
    on="own",
    repeat="request",
    durable="work",
    changes=("tasks",),
    approve="contract",
):
    """Other phases, or another folder; what is not given stays."""

    project: Word | None = None
    cwd: Path | None = None
    phases: list[str] | None = None
    root: Path | None = None


class ProjectShow(Operation["Json"], op="project_show", right="work", on="own", repeat="always"):
    """The project's state."""

    project: Word | None = None
    cwd: Path | None = None


class ProjectLs(Operation["list[Json]"], op="project_ls", right="work", on="own", repeat="always"):
    """All projects."""


class PolicySet(
    Once["Json"], op="policy_set", right="work", on="own", repeat="request", durable="work", approve="contract"
):
    """The project's next policy; attempts that have begun keep theirs."""

    policy: Json
    project: Word | None = None
    cwd: Path | None = None


class PolicyShow(Operation["Json"], op="policy_show", right="work", on="own", repeat="always"):
    """A project's policy; the one in force without a version."""

    project: Word | None = None
    cwd: Path | None = None
    version: Whole | None = None


class BackendAdd(Act["Json"], op="backend_add", right="work", on="own", repeat="always", durable="work"):
    """A command line that does tasks; the same name again replaces it."""

    name: Word
    template: list[str]
    env: Variables | None = None
    timeout_s: Seconds | None = None
    terminal: bool = False


class BackendRm(Once["Json"], op="backend_rm", right="work", on="own", repeat="request", durable="work"):
    """Forget a backend."""

    name: Word


class BackendLs(Operation["list[Json]"], op="backend_ls", right="work", on="own", repeat="always"):
    """All backends."""
