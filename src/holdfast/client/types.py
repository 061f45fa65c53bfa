"""What the SDK returns, typed: the contract's objects as they are on the wire."""

from __future__ import annotations

from typing import Any

import msgspec


class Activity(msgspec.Struct, frozen=True):
    kind: str
    confidence: str
    evidence: str
    prompt: str | None = None
    says: str | None = None  # what the program reports of itself: idle, working, blocked, done


class Exit(msgspec.Struct, frozen=True):
    code: int | None
    signal: str | None
    known: bool
    at: str | None = None
    by: str | None = None


class OutputBounds(msgspec.Struct, frozen=True):
    start: int
    end: int
    durable: int


class Process(msgspec.Struct, frozen=True):
    pid: int
    ppid: int
    name: str
    command: str
    state: str
    cpu_s: float
    rss: int


class Port(msgspec.Struct, frozen=True):
    port: int
    address: str
    protocol: str
    pid: int
    session: str | None = None
    session_name: str | None = None


class Connection(msgspec.Struct, frozen=True):
    local: str
    remote: str
    state: str
    pid: int


class OpenFile(msgspec.Struct, frozen=True):
    pid: int
    fd: int
    path: str
    kind: str
    offset: int | None = None
    lock: str | None = None


class Pty(msgspec.Struct, frozen=True):
    cols: int
    rows: int
    canonical: bool
    echo: bool
    foreground_pgid: int
    path: str | None = None


class Controls(msgspec.Struct, frozen=True, rename={"taken_from": "from"}):
    """`taken_from` gets them when they are handed back; `ends_at` is when a takeover ends whose person is away."""

    holder: str | None
    kind: str | None
    epoch: int
    since: str | None = None
    name: str | None = None
    taken_from: dict[str, str] | None = None
    ends_at: str | None = None


class Attached(msgspec.Struct, frozen=True):
    operator: str
    name: str
    via: str
    mode: str
    since: str | None = None


class SessionStatus(msgspec.Struct, frozen=True):
    """The authoritative answer about one session, observed at `observed_at`."""

    id: str
    name: str
    host: str
    kind: str
    generation: int
    state: str
    attached_count: int
    activity: Activity
    command: list[str]
    cwd: str
    pid: int | None
    created_at: str
    started_by: str
    acts_as: str
    exit: Exit | None
    output: OutputBounds
    controls: Controls
    observed_at: str
    started_at: str | None = None
    restart: str = "never"
    restart_at: str | None = None
    idle_ttl_s: float | None = None
    reap_at: str | None = None
    pty: Pty | None = None
    processes: list[Process] = []
    ports: list[Port] = []
    connections: list[Connection] = []
    files: list[OpenFile] = []
    attached: list[Attached] = []
    isolation: dict[str, Any] | None = None
    kernel: dict[str, Any] | None = None


class ExecResult(msgspec.Struct, frozen=True):
    """How a command in the session's shell stands; `output` is text with `\\n` line ends, `raw` the bytes."""

    exec_id: str
    state: str
    exit_code: int | None
    output: str
    raw: bytes
    start: int | None
    end: int
    omitted_bytes: int
    duration_ms: int
    cwd: str | None
    prompt: str | None
    outputs: list[dict[str, Any]] = []  # of a kernel's cell, as notebooks keep them
    error: dict[str, Any] | None = None  # ename, evalue, traceback
    execution_count: int | None = None
    outputs_omitted: dict[str, int] | None = None  # what of `outputs` was past its bounds
    ask: str | None = None  # the inbox item, where a person is asked first (`waiting_for_approval`)


class WaitResult(msgspec.Struct, frozen=True):
    """What came true, and the offset to go on from."""

    event: str
    offset: int
    detail: dict[str, object]


class Chunk(msgspec.Struct, frozen=True):
    """A stretch of output. `gap` is (from, to) where output is gone; `data` is then empty."""

    offset: int
    data: bytes
    stream: str = "terminal"
    gap: tuple[int, int] | None = None

    @property
    def end(self) -> int:
        return self.gap[1] if self.gap else self.offset + len(self.data)


class Ask(msgspec.Struct, frozen=True):
    """An inbox item. `kind` is input, secret, menu, question, approval, control_request, held_controls or parked_run;
    `state` begins as open."""

    id: str
    kind: str
    state: str
    session: str | None
    session_name: str | None
    asker: dict[str, str] | None
    text: str
    options: list[str]
    detail: dict[str, object]
    created_at: str
    expires_at: str | None
    answer: str | None
    answered_by: dict[str, str] | None
    answered_at: str | None
    changed: int
    answer_why: str | None = None  # the reason that came with the answer
    reason: str | None = None  # of one that is gone: decided (in the terminal), asker_ended


class Screen(msgspec.Struct, frozen=True):
    session: str
    offset: int
    cols: int
    rows: int
    text: str
    cursor: dict[str, object]
    title: str
    alternate: bool
