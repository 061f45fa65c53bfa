"""Looking at sessions: nothing that is asked here changes one."""

from __future__ import annotations

from .operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Json, Pids, Port, Ports, Seconds, Whole, Word


class Ping(Operation["Json"], op="ping", repeat="always", isolated=True):
    """The host, and the operator that it takes the caller for."""


class Ls(Operation["list[Json]"], op="ls", right="view", on="each", repeat="always", isolated=True):
    """What runs; with `all` the ended sessions too."""

    all: bool = False
    sessions: list[Word] | None = None
    processes: bool = False
    lines: bool = False
    still: bool = False


class Status(Operation["Json"], op="status", right="view", on="each", repeat="always", isolated=True):
    """One session whole; without one the host, and all sessions."""

    session: Word | None = None


class ListPorts(Operation["list[Json]"], op="ports", right="view", on="each", repeat="always", isolated=True):
    """Which sessions listen on which ports."""

    port: Port | None = None


class Facts(Operation["Json"], op="facts", right="view", on="each", repeat="always"):
    """Who listens on each port, and what each pid is, with the start time that names it."""

    ports: Ports | None = None
    pids: Pids | None = None


class Screen(Operation["Json"], op="screen", right="view", on="session", repeat="always", isolated=True):
    """What a terminal shows now."""

    session: Word


class Offset(Operation["Json"], op="offset", right="view", on="session", repeat="always", isolated=True):
    """Where the output since a time begins, and what there is."""

    session: Word
    since: Seconds | None = None


class Keys(Operation["Json"], op="keys", right="view", on="session", repeat="always", isolated=True):
    """How the terminal wants its keys encoded."""

    session: Word


class Wait(Operation["Json"], op="wait", right="view", on="session", repeat="always", isolated=True):
    """Answered when what is waited for happens (`exit`, `quiet=5`, `text=PATTERN` …), or the time is up."""

    session: Word
    until: str
    start: Whole | None = None
    timeout: Seconds | None = None
