"""Artifacts: contents under a name, in pieces; and which files attempts made."""

from __future__ import annotations

from ..operation import Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Base64, Json, Path, Seconds, Sha256, Whole, Word


class ArtifactPiece(Operation["Json"], op="artifact_piece", right="work", on="own", repeat="always", durable="work"):
    """A part of a large content, base64; `artifact_put` names the whole once all have come."""

    sha256: Sha256
    piece: Whole
    data: Base64


class ArtifactPut(
    Once["Json"], op="artifact_put", right="work", on="own", repeat="request", durable="work", changes=("log",)
):
    """Name a content: given here (base64), or by its hash after its pieces."""

    run: Word
    name: Word
    sha256: Sha256 | None = None
    data: Base64 | None = None
    media: Word | None = None
    sources: list[str] | None = None
    epoch: Whole | None = None


class ArtifactRm(
    Once["Json"], op="artifact_rm", right="work", on="own", repeat="request", durable="work", changes=("log",)
):
    """Forget a name; its content goes with the last one."""

    run: Word
    name: Word
    epoch: Whole | None = None


class ArtifactFind(Operation["Json"], op="artifact_find", right="work", on="own", repeat="always"):
    """What is known of an artifact, by its run and name."""

    run: Word
    name: Word


class ArtifactRead(Operation["Json"], op="artifact_read", right="work", on="own", repeat="always"):
    """A piece of a content, base64; null past its end."""

    sha256: Sha256
    piece: Whole = 0


class ArtifactLs(Operation["list[Json]"], op="artifact_ls", right="work", on="own", repeat="always"):
    """The artifacts of a run, or all."""

    run: Word | None = None


class ArtifactOrphans(Operation["list[Json]"], op="artifact_orphans", right="work", on="own", repeat="always"):
    """Contents that no name stands for."""


class ArtifactGc(Operation["Json"], op="artifact_gc", right="work", on="own", repeat="always", durable="work"):
    """Forget contents that no name stands for and that are this old."""

    older_s: Seconds = 3600.0


class ChangesLs(Operation["list[Json]"], op="changes_ls", right="work", on="own", repeat="always"):
    """Attempts that created or changed files, the latest first; of one task, or of all."""

    task: Word | None = None
    project: Word | None = None
    cwd: Path | None = None


class SessionChanges(Operation["list[Json]"], op="session_changes", right="work", on="own", repeat="always"):
    """What attempts that ran in a session did to their files, as it was noted when each ended; the latest first."""

    session: Word
