"""Made from _async/host.py by scripts/make_sync.py: change that file, not this one."""

from __future__ import annotations

from ..requests import isolation, own_limits, plain_text, start_request, typed, wait_spec
from .channel import Channel
from .inbox import Inbox
from .operators import Operators
from .session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from ..types import Port, SessionStatus
    from .work import Work

__all__ = [
    "Channel",
    "Host",
    "Session",
    "connect",
    "isolation",
    "own_limits",
    "plain_text",
    "start_request",
    "wait_spec",
]


class Host(Inbox, Operators):
    """A host, reached through its socket. Connections are made as needed and reused, one request at a time each."""

    _work: Work | None = None

    @property
    def work(self) -> Work:
        """Durable runs: `host.work.run(…)`."""
        from .work import Work

        if self._work is None:
            self._work = Work(self)
        return self._work

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def run(
        self,
        command: Sequence[str] | None = None,
        *,
        name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        pipes: bool = False,
        size: tuple[int, int] | None = None,
        restart: str = "never",
        idle_ttl: str | None = None,
        acts_as: str | None = None,
        why: str | None = None,
        pids_max: int | None = None,
        memory_max: int | None = None,
        log_max: int | None = None,
        isolate: bool = False,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        network: bool = True,
        kernel: str | None = None,
        written_by: Sequence[str] = (),
        record: bool = False,
    ) -> Session:
        """Start a session (by default the user's shell) with this process's environment, plus `env`.

        With `kernel`, a kernelspec's name, it holds a Jupyter kernel, and `exec` runs code in that (docs/kernels.md).

        With `isolate` it sees the system, its own folder, and what `read` and `write` name (docs/isolation.md).

        `written_by` names operators whose commands these are: what an agent wrote may do no more than that agent. With
        `record`, on pipes, stderr is for programs to read, and left out of what people are shown.
        """
        request = start_request(
            command,
            name=name,
            cwd=cwd,
            env=env,
            pipes=pipes,
            size=size,
            restart=restart,
            idle_ttl=idle_ttl,
            acts_as=acts_as,
            why=why,
            pids_max=pids_max,
            memory_max=memory_max,
            log_max=log_max,
            isolate=isolation(isolate, read, write, network),
            kernel=kernel,
            written_by=written_by,
        )
        made = self.call("run", brief=True, record=record, **request)
        return Session(self, made["id"], made["name"])

    def session(self, session: str) -> Session:
        """A session by name, id or the beginning of its id."""
        found = self.call("status", session=session)
        return Session(self, found["id"], found["name"])

    def sessions(self, *, all: bool = False) -> list[SessionStatus]:
        """What is there; with `all` the ended ones too."""
        from ..types import SessionStatus

        return typed(self.call("ls", all=all), list[SessionStatus])

    def ports(self, port: int | None = None) -> list[Port]:
        """Listening ports of all sessions, each with its session and pid."""
        from ..types import Port

        return typed(self.call("ports", port=port), list[Port])


def connect(home: str | None = None, *, autostart: bool = True, operator: str | None = None) -> Host:
    """Connect to this machine's host, starting it if need be."""
    host = Host(home, autostart=autostart, operator=operator)
    host.call("ping")
    return host
