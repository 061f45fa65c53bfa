"""Operations on the journal: read it as a timeline, prove it, and give its head away."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any

from ...model import limits
from ...model.errors import invalid
from ...model.times import rfc3339
from ..base import Base, number, whole
from ..sessions.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller

Json = dict[str, Any]


class JournalOps(Base):
    """timeline, journal_verify and journal_head."""

    async def op_timeline(self, request: Json, caller: Caller) -> Json:
        """Entries in order, of one session or of all that the caller may see; `next` is where older ones go on."""
        session = self._visible(request, caller) if request.get("session") else None
        before, after = whole(request.get("before"), "an entry's number"), number(request.get("since"), "a time")
        count = max(1, min(whole(request.get("limit"), "a count") or limits.TIMELINE_MAX, limits.TIMELINE_MAX))
        await self.journal.written()
        where, values = ["1"], list[object]()
        if session is not None:
            where.append("session = ?")
            values.append(session.id)
        if before is not None:
            where.append("n < ?")
            values.append(before)
        query = f"SELECT body FROM entries WHERE {' AND '.join(where)} ORDER BY n DESC LIMIT ?"
        rows = await self.ledger.read(lambda db: _bodies(db, query, [*values, count]))
        entries = [json.loads(r) for r in rows]
        full = len(entries) == count and (after is None or entries[-1]["at"] >= after)
        kept = [e for e in entries if (after is None or e["at"] >= after) and self._readable(e, caller)]
        return {
            "entries": [self._entry(e) for e in reversed(kept)],
            "next": entries[-1]["n"] if full and entries[-1]["n"] > 1 else None,
        }

    def _readable(self, entry: Json, caller: Caller) -> bool:
        """One sees what was done to sessions one may view; the host's own entries take a grant on `*`."""
        if caller.may("view", None):
            return True
        session = self.registry.sessions.get(str(entry.get("session")))
        return session is not None and caller.may("view", session)

    def _entry(self, entry: Json) -> Json:
        session: Session | None = self.registry.sessions.get(str(entry.get("session")))
        name = session.name if session is not None else entry.get("session_name")
        shown = {
            "epoch": None,
            "offset": None,
            "why": None,
            "operator": None,
            "name": None,
            "operator_kind": None,
            "session": None,
            **entry,
        }
        return {**shown, "at": rfc3339(entry["at"]), "session_name": name}

    async def op_journal_head(self, request: Json, caller: Caller) -> Json | None:
        """The chain's end, signed now: to be kept where this host cannot reach it."""
        return await self.journal.sign()

    async def op_journal_verify(self, request: Json, caller: Caller) -> Json:
        """Every hash and every signature; `head` is one that was kept elsewhere."""
        foreign = request.get("head")
        if foreign is not None and not _is_head(foreign):
            raise invalid("that is not a journal's head", "hold journal head --json > FILE makes one")
        began = time.monotonic()
        verdict = await self.journal.verify([foreign] if foreign is not None else [])
        return {
            "ok": verdict.ok,
            "entries": verdict.entries,
            "heads": verdict.heads,
            "bad": verdict.bad,
            "reason": verdict.reason or None,
            "head": verdict.hash.hex(),
            "duration_ms": int((time.monotonic() - began) * 1000),
        }


def _bodies(db: sqlite3.Connection, query: str, values: list[object]) -> list[bytes]:
    return [bytes(row[0]) for row in db.execute(query, values)]


def _is_head(value: object) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("n"), int)
        and value["n"] > 0
        and all(isinstance(value.get(k), str) for k in ("host", "hash", "signature"))
        and isinstance(value.get("at"), (int, float))
    )
