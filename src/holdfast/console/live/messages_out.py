"""Messages to a browser, as types: the API description is derived from them, and a test checks the sockets."""

from __future__ import annotations

from typing import Any

import msgspec

from ...client.types import Ask, Exit
from ..handlers.sessions import Session

Json = dict[str, Any]


class Actor(msgspec.Struct, frozen=True):
    operator: str
    kind: str
    name: str


class Why(msgspec.Struct, frozen=True):
    code: str
    message: str
    hint: str


class SaysAttached(msgspec.Struct, frozen=True, tag_field="kind", tag="attached"):
    """The first message: the session, the viewer, and the offsets of its output."""

    session: str
    name: str
    session_kind: str
    me: Actor
    offset: int
    cols: int
    rows: int


class SaysRestore(msgspec.Struct, frozen=True, tag_field="kind", tag="restore"):
    """The next binary message draws the whole screen: reset the terminal to this size first."""

    offset: int
    cols: int
    rows: int
    reset: bool


class SaysControls(msgspec.Struct, frozen=True, tag_field="kind", tag="controls", rename={"from_": "from"}):
    """Who holds the controls now; answer with `seen`. `from` is the previous holder."""

    holder: str | None
    holder_kind: str | None
    name: str | None
    epoch: int
    since: str | None
    mine: bool
    from_: Actor | None


class SaysSize(msgspec.Struct, frozen=True, tag_field="kind", tag="size"):
    cols: int
    rows: int


class SaysGap(msgspec.Struct, frozen=True, tag_field="kind", tag="gap", rename={"from_": "from"}):
    """Output that was pruned."""

    from_: int
    to: int


class SaysTyped(msgspec.Struct, frozen=True, tag_field="kind", tag="typed"):
    """Input up to this number was typed."""

    seq: int


class SaysRefused(msgspec.Struct, frozen=True, tag_field="kind", tag="refused"):
    error: Why
    seq: int | None = None


class SaysTaken(msgspec.Struct, frozen=True, tag_field="kind", tag="taken"):
    """Another operator took the controls from you."""

    by: Actor
    note: str | None


class SaysHanded(msgspec.Struct, frozen=True, tag_field="kind", tag="handed"):
    """Another operator handed you the controls."""

    by: Actor
    note: str | None


class SaysExit(msgspec.Struct, frozen=True, tag_field="kind", tag="exit"):
    exit: Exit | None


class SaysPing(msgspec.Struct, frozen=True, tag_field="kind", tag="ping"):
    pass


class SaysPong(msgspec.Struct, frozen=True, tag_field="kind", tag="pong"):
    pass


class SaysSessions(msgspec.Struct, frozen=True, tag_field="kind", tag="sessions"):
    """First all sessions, then those that changed."""

    sessions: list[Session]


class SaysGone(msgspec.Struct, frozen=True, tag_field="kind", tag="gone"):
    id: str


class SaysInbox(msgspec.Struct, frozen=True, tag_field="kind", tag="inbox"):
    """First the open items, then each item that changes."""

    items: list[Ask]


MESSAGES: tuple[Any, ...] = (
    SaysAttached,
    SaysRestore,
    SaysControls,
    SaysSize,
    SaysGap,
    SaysTyped,
    SaysRefused,
    SaysTaken,
    SaysHanded,
    SaysExit,
    SaysPing,
    SaysPong,
    SaysSessions,
    SaysGone,
    SaysInbox,
)
Said = (
    SaysAttached
    | SaysRestore
    | SaysControls
    | SaysSize
    | SaysGap
    | SaysTyped
    | SaysRefused
    | SaysTaken
    | SaysHanded
    | SaysExit
    | SaysPing
    | SaysPong
    | SaysSessions
    | SaysGone
    | SaysInbox
)
