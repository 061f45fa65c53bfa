"""A session's life: start, stop, restart, rename, remove."""

from __future__ import annotations

from .operation import Act, Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import (
        Authors,
        Isolate,
        Json,
        Limits,
        Path,
        ResourceLimits,
        Restart,
        Seconds,
        Size,
        Umask,
        Variables,
        Word,
        Words,
    )


class Run(
    Once["Json"],
    op="run",
    right="start",
    on="new",
    repeat="request",
    durable="journal",
    changes=("list",),
    isolated=True,
    approve="run",
):
    """Start a program in a new session. With `standing` it may wait in the inbox for a person's yes."""

    command: Words | None = None
    name: str | None = None
    cwd: Path | None = None
    env: Variables | None = None
    pipes: bool = False
    size: Size | None = None
    restart: Restart = "never"
    idle_ttl: Word | None = None
    acts_as: Word | None = None
    umask: Umask = 0o022
    rlimits: ResourceLimits | None = None
    limits: Limits | None = None
    isolate: Isolate | None = None
    kernel: Word | None = None
    written_by: Authors | None = None
    record: bool = False
    brief: bool = False
    standing: bool = False
    timeout: Seconds | None = None


class Started(Operation["list[Json]"], op="started", right="view", on="each", repeat="always"):
    """The sessions that a request started; with `like`, a start, whether each was started just so."""

    started: Word
    like: Json | None = None


class Stop(
    Once["Json"],
    op="stop",
    right="stop",
    on="session",
    repeat="request",
    durable="journal",
    frees=True,
    changes=("list",),
    isolated=True,
):
    """End a session's program and its processes: TERM, and KILL after the grace time."""

    session: Word
    grace_s: Seconds | None = None
    asked_s_ago: Seconds | None = None


class RestartSession(
    Act["Json"],
    op="restart",
    right="start",
    on="session",
    durable="journal",
    changes=("list",),
    isolated=True,
    approve="run",
):
    """Start a session's program again; one that runs is stopped first, which takes the right to."""

    session: Word
    grace_s: Seconds | None = None


class Remove(
    Act["Json"],
    op="rm",
    right="stop",
    on="session",
    durable="journal",
    frees=True,
    changes=("list",),
    isolated=True,
):
    """Forget an ended session and its output."""

    session: Word


class Rename(Act["Json"], op="rename", right="stop", on="session", durable="journal", changes=("list",)):
    """Give a session another name."""

    session: Word
    name: str


class Prune(Act["Json"], op="prune", right="stop", on="each", durable="journal", frees=True, changes=("list",)):
    """Remove ended sessions of an age."""

    older_than_s: Seconds = 0.0
