"""Acting on what runs in a session: typing, sizing, signals, and the controls."""

from __future__ import annotations

from .operation import Act, Once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Base64, Json, Seconds, Size, Whole, Word


class Send(
    Once["Json"],
    op="send",
    right="type",
    on="session",
    repeat="request",
    durable="journal",
    isolated=True,
    approve="send",
):
    """Type into a session; takes free controls for its duration."""

    session: Word
    data: Base64 = ""
    enter: bool = False
    secret: bool = False
    eof: bool = False
    asked_s_ago: Seconds | None = None
    ancestor: Whole | None = None
    standing: bool = False
    timeout: Seconds | None = None


class Resize(Act["Json"], op="resize", right="resize", on="session", durable="journal", isolated=True):
    """Give a terminal another size."""

    session: Word
    size: Size


class Kill(
    Once["Json"],
    op="kill",
    right="signal",
    on="session",
    repeat="request",
    durable="journal",
    frees=True,
    isolated=True,
):
    """Send a signal to a session's program, or to the part of it that `target` names."""

    session: Word
    signal: Word = "TERM"
    target: Word | None = None
    asked_s_ago: Seconds | None = None


class Take(
    Once["Json"],
    op="take",
    right="request_control",
    on="session",
    repeat="request",
    durable="journal",
    isolated=True,
):
    """Take the controls: free ones, or an agent's. A person who holds them is asked first, unless `force`."""

    session: Word
    force: bool = False
    timeout: Seconds | None = None
    asked_s_ago: Seconds | None = None
    ancestor: Whole | None = None


class Release(
    Once["Json"], op="release", right="view", on="session", repeat="request", durable="journal", isolated=True
):
    """Give the controls up; the keeper knows who holds them."""

    session: Word
    asked_s_ago: Seconds | None = None


class Hand(Once["Json"], op="hand", right="view", on="session", repeat="request", durable="journal"):
    """Give the controls to an operator; unless told otherwise, back to whom they were taken from."""

    # Not `isolated`: a program inside would learn which operators there are.

    session: Word
    asked_s_ago: Seconds | None = None
    to: Word | None = None
    note: str | None = None
