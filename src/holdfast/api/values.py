"""The values that requests are made of, with their bounds. Loaded where requests are checked; clients read the names.

A bound here keeps out what no handler could use. What is wrong with a value that has the right shape (a name that
cannot be, a range that does not fit another) the handler says, in better words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ..model import limits

Json = dict[str, Any]  # what is a person's or a program's own, or is checked whole where it is understood

_INT_MAX = 1 << 62  # what SQLite, PostgreSQL and the keeper all take
_PATH_MAX = 4096  # as the kernel has it
_TIME_MAX = 1e15  # seconds: far beyond every clock, and exact as a float

Word = Annotated[str, Meta(max_length=limits.KEY_MAX)]  # an id, a name, a key
Path = Annotated[str, Meta(max_length=_PATH_MAX)]
Text = Annotated[str, Meta(max_length=limits.VALUE_BYTES_MAX)]  # in words; how many of them, the handler says
Base64 = Annotated[str, Meta(max_length=limits.REQUEST_BYTES_MAX)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Hex = Annotated[str, Meta(max_length=limits.KEY_MAX)]
Whole = Annotated[int, Meta(ge=0, lt=_INT_MAX)]  # an offset, a count, an epoch
Seconds = Annotated[float, Meta(ge=0, lt=_TIME_MAX)]
Port = Annotated[int, Meta(ge=0, le=65535)]
Pid = Annotated[int, Meta(ge=0, lt=_INT_MAX)]
Ports = Annotated[list[Port], Meta(max_length=limits.CLAIMS_MAX)]
Pids = Annotated[list[Pid], Meta(max_length=limits.CLAIMS_MAX)]
Umask = Annotated[int, Meta(ge=0, le=0o777)]
Size = tuple[int, int]
Variables = dict[str, str]
Words = list[str]
Authors = Annotated[list[Word], Meta(max_length=limits.OPERATORS_MAX)]
Ends = dict[str, Whole]
Limit = Annotated[int, Meta(ge=-1, lt=_INT_MAX)]  # -1 is no limit
ResourceLimits = dict[str, tuple[Limit, Limit]]
Jobs = Annotated[list[Word], Meta(min_length=1, max_length=limits.JOBS_MAX)]
Crashes = Annotated[dict[str, Annotated[int, Meta(ge=1, lt=_INT_MAX)]], Meta(max_length=limits.JOBS_MAX)]
ClaimResults = Annotated[list[Json], Meta(max_length=limits.CLAIMS_MAX)]

Restart = Literal["never", "on-failure", "always"]
NewsOf = Literal["sessions", "list", "tasks"]
AskKind = Literal["question", "approval"]
OperatorKind = Literal["human", "agent", "service"]
Effect = Literal["none", "idempotent", "verifiable", "unsafe"]
Outcome = Literal["done", "not_done", "failed"]
EndState = Literal["done", "failed", "cancelled"]
LogKind = Literal["message", "reasoning", "decision", "learned", "rejected", "question", "answer", "note"]


class Limits(Struct, forbid_unknown_fields=True):
    """What a session may use, in counts and bytes."""

    pids: Whole | None = None
    memory: Whole | None = None
    log: Whole | None = None


class Isolate(Struct, forbid_unknown_fields=True):
    """What an isolated program sees besides its own folder."""

    read: list[Path] | None = None
    write: list[Path] | None = None
    network: bool = True


class Dialog(Struct, forbid_unknown_fields=True):
    """An agent's own names for what it shows a person: they are compared, never read."""

    conversation: Word
    agent: Word | None = None
    call: Word | None = None


class Process(Struct, forbid_unknown_fields=True):
    """A worker's process, as the kernel of its machine knows it."""

    id: Word
    place: Word
    pid: Pid
    started: Whole


class Ended(Struct, forbid_unknown_fields=True):
    """The outcome of a step that is told together with the next intent."""

    key: Word
    request: Word
    result: object = None
