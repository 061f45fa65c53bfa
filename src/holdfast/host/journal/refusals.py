"""Refusals in the journal: each is kept, and a flood of the same one is one entry with a count."""

from __future__ import annotations

import asyncio
from typing import Any

from ...model import limits
from .journal import Journal

Json = dict[str, Any]
_Key = tuple[str, str, str | None, str]
_OP_MAX, _REASON_MAX = 40, 500  # characters: names and sentences of ours fit, a caller's megabytes are not kept


class Refusals:
    """The first of its kind is written at once; what repeats within the window is counted and written at its end."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._open: dict[_Key, int] = {}

    def note(self, op: str, reason: str, *, actor: Json | None, session: str | None, **facts: Any) -> None:
        op, reason = op[:_OP_MAX], reason[:_REASON_MAX]
        key: _Key = (str(actor["operator"]) if actor else "?", op, session, reason)
        if key not in self._open and len(self._open) >= limits.REFUSALS_TRACKED_MAX:
            key, actor, session = ("many", "many", None, ""), None, None
        if key in self._open:
            self._open[key] += 1
            return
        self._open[key] = 0
        self._journal.note("refuse", session=session, actor=actor, op=op, reason=reason, **facts)
        asyncio.get_running_loop().call_later(limits.REFUSAL_WINDOW_S, self._close, key, actor, session, op, reason)

    def _close(self, key: _Key, actor: Json | None, session: str | None, op: str, reason: str) -> None:
        more = self._open.pop(key, 0)
        if more:
            self._journal.note("refuse", session=session, actor=actor, op=op, reason=reason, repeated=more)

    def flush(self) -> None:
        """At the host's end: what was only counted so far."""
        for key, more in self._open.items():
            if more:
                self._journal.note("refuse", session=key[2], actor=None, op=key[1], by=key[0], repeated=more)
        self._open.clear()
