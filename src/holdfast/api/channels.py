"""Channels to a session, and its output as it was recorded."""

from __future__ import annotations

from .operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Json, Variables, Whole, Word


class Open(Operation["Json"], op="open", right="view", on="session", repeat="always", isolated=True):
    """A channel to a session's output and input: its reply carries a descriptor."""

    session: Word
    read_only: bool = False
    sure: bool = False
    via: Word = "sdk"
    client: Word | None = None
    ancestor: Whole | None = None


class Attach(Operation["Json"], op="attach", right="view", on="session", repeat="always", isolated=True):
    """What restores the screen, and the channel that goes on from there: its reply carries a descriptor."""

    session: Word
    read_only: bool = False
    ended: bool = False
    snapshot: bool = False
    acks: bool = False
    via: Word = "sdk"
    client: Word | None = None
    env: Variables | None = None
    ancestor: Whole | None = None


class Snapshot(Operation["Json"], op="snapshot", right="view", on="session", repeat="always", isolated=True):
    """What restores the screen, for a client that has its channel already and fell behind on it."""

    session: Word


class Recording(Operation["Json"], op="recording", right="view", on="session", repeat="always", isolated=True):
    """A page of the recorded output, from an offset on."""

    session: Word
    start: Whole | None = None
