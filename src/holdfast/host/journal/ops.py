"""Operations on the journal: read it as a timeline, prove it, and give its head away."""

from __future__ import annotations

import json
import sqlite3
import time
from typing import Any, NamedTuple

from ...api.journal import JournalHead, JournalVerify, Timeline
from ...model import limits
from ...model.errors import invalid
from ...model.times import rfc3339
from ..operators.caller import Caller
from ..sessions import find
from ..sessions.registry import Registry
from .journal import Journal
from .ledger import Ledger

Json = dict[str, Any]
_UNSAID = dict.fromkeys(("epoch", "offset", "why", "operator", "name", "operator_kind", "session"))


class JournalParts(NamedTuple):
    """What the handlers here use of the host."""

    registry: Registry
    journal: Journal
    ledger: Ledger


@Timeline.answered
async def timeline(parts: JournalParts, caller: Caller, request: Timeline) -> Json:
    session = find.visible(parts.registry, request.session, caller) if request.session else None
    after = request.since
    count = max(1, min(request.limit or limits.TIMELINE_MAX, limits.TIMELINE_MAX))
    await parts.journal.written()
    where, values = ["1"], list[object]()
    if session is not None:
        where.append("session = ?")
        values.append(session.id)
    if request.before is not None:
        where.append("n < ?")
        values.append(request.before)
    query = f"SELECT body FROM entries WHERE {' AND '.join(where)} ORDER BY n DESC LIMIT ?"
    rows = await parts.ledger.read(lambda db: _bodies(db, query, [*values, count]))
    entries = [json.loads(r) for r in rows]
    full = len(entries) == count and (after is None or entries[-1]["at"] >= after)
    kept = [e for e in entries if (after is None or e["at"] >= after) and _readable(parts.registry, e, caller)]
    return {
        "entries": [_entry(parts.registry, e) for e in reversed(kept)],
        "next": entries[-1]["n"] if full and entries[-1]["n"] > 1 else None,
    }


def _readable(registry: Registry, entry: Json, caller: Caller) -> bool:
    """A caller sees what was done to sessions that it may view; the host's own entries take a grant on `*`."""
    if caller.may("view", None):
        return True
    session = registry.sessions.get(str(entry.get("session")))
    return session is not None and caller.may("view", session)


def _entry(registry: Registry, entry: Json) -> Json:
    session = registry.sessions.get(str(entry.get("session")))
    name = session.name if session is not None else entry.get("session_name")
    return {**_UNSAID, **entry, "at": rfc3339(entry["at"]), "session_name": name}


@JournalHead.answered
async def journal_head(parts: JournalParts, caller: Caller, request: JournalHead) -> Json | None:
    return await parts.journal.sign()


@JournalVerify.answered
async def journal_verify(parts: JournalParts, caller: Caller, request: JournalVerify) -> Json:
    foreign = request.head
    if foreign is not None and not _is_head(foreign):
        raise invalid("that is not a journal's head", "hold journal head --json > FILE makes one")
    began = time.monotonic()
    verdict = await parts.journal.verify([foreign] if foreign is not None else [])
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


def _is_head(value: Json) -> bool:
    return (
        isinstance(value.get("n"), int)
        and value["n"] > 0
        and all(isinstance(value.get(k), str) for k in ("host", "hash", "signature"))
        and isinstance(value.get("at"), (int, float))
    )
