"""The journal: read it as a timeline, prove it, and give its head away."""

from __future__ import annotations

from .operation import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .values import Json, Seconds, Whole, Word


class Timeline(Operation["Json"], op="timeline", right="view", on="each", repeat="always"):
    """Entries in order, of one session or of all that the caller may see; `next` is where older ones go on."""

    session: Word | None = None
    before: Whole | None = None
    since: Seconds | None = None
    limit: Whole | None = None


class JournalHead(Operation["Json | None"], op="journal_head", right="view", on="host", repeat="always"):
    """The chain's end, signed now: to be kept where this host cannot reach it."""


class JournalVerify(Operation["Json"], op="journal_verify", right="view", on="host", repeat="always"):
    """Every hash and every signature; `head` is one that was kept elsewhere."""

    head: Json | None = None
