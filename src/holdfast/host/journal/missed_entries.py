"""Entries that a host owed when it died: what was begun and not yet in the journal, told from what lies on disk.

A start leaves its manifest and a command its record before either begins, each with who wanted it. The journal is
written in order, so that only what is younger than its newest entry can be missing. Such an entry says that it came
`late`.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from typing import Any

from ...model import limits
from ...model.errors import HoldfastError
from ..exec.results_file import Results
from ..operators.operators import Operators
from ..sessions.session import Session
from .journal import Journal
from .ledger import Ledger
from .spool_ingest import Ingest

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_BEFORE_S = 60.0  # an act can be older than entries that were written before its own: by a slow start at most
_EXECS_OWED_MAX = 8  # commands of one session that can wait for one commit: they run one after the other


class Recovery:
    """Looks once, before anybody is served."""

    def __init__(self, ledger: Ledger, journal: Journal, operators: Operators, ingest: Ingest) -> None:
        self._ledger, self._journal, self._operators, self._ingest = ledger, journal, operators, ingest

    async def settle(self, sessions: list[Session]) -> None:
        newest = await self._ledger.read(_newest_at) - _BEFORE_S
        for session in sessions:
            try:
                await self._starts(session, newest)
                await self._execs(session, newest)
            except (HoldfastError, OSError) as e:  # a keeper that does not answer: the next host looks again
                log.warning("what is owed to the journal about %s is not known: %s", session.name, e)
        try:
            await self._journal.written()
        except HoldfastError:
            pass  # the disk: the entries wait in the queue like any others, and sessions are served all the same

    async def _starts(self, session: Session, newest: float) -> None:
        """Its first start, which was answered before its entry was written, and the last one after that."""
        m = session.manifest
        if float(m["created_at"]) >= newest:
            facts = {"cwd": m["cwd"], "acts_as": m["acts_as"], "why": m.get("why")}
            await self._start(session, "start", 1, m["started_by"], m["created_at"], facts)
        if m["generation"] > 1 and float(m["started_at"]) >= newest:
            await self._start(session, "restart", m["generation"], m.get("restarted_by"), m["started_at"], {})

    async def _start(self, session: Session, kind: str, generation: int, by: object, at: float, facts: Json) -> None:
        if await self._entry(session, kind, b'"generation":%d,' % generation):
            return
        self._journal.note(
            kind,
            session=session.id,
            actor=self._actor(by),
            generation=generation,
            session_name=session.name,
            command=words(session),
            late=True,
            started_at=at,
            **facts,
        )

    async def _execs(self, session: Session, newest: float) -> None:
        records = list(Results(session.folder.execs).all().values())[-_EXECS_OWED_MAX:]
        for record in records:
            if record.get("void") or float(record["started_at"]) < newest:
                continue
            mark = b'"exec_id":%s' % json.dumps(record["exec_id"]).encode()
            if await self._entry(session, "exec", mark):
                continue
            if session.connected and session.spools:
                await session.line.act("events", after=0, max=1, now=True)  # what is being typed is an entry now
            await self._ingest.fetch(session)
            typed = await self._entry(session, "input", mark)  # the keeper's word that the shell got it
            if typed is not None:
                self._journal.note(
                    "exec",
                    session=session.id,
                    actor=record.get("actor") or self._actor(record["operator"]),
                    why=typed.get("why"),
                    generation=record["generation"],
                    session_name=session.name,
                    exec_id=record["exec_id"],
                    text=record["source"],
                    epoch=typed.get("epoch"),
                    offset=record["from"],
                    late=True,
                    started_at=record["started_at"],
                )

    async def _entry(self, session: Session, kind: str, mark: bytes) -> Json | None:
        query = "SELECT body FROM entries WHERE session = ? AND instr(body, ?) AND instr(body, ?) ORDER BY n DESC"
        values = (session.id, b'"kind":"%b"' % kind.encode(), mark)
        row = await self._ledger.read(lambda db: db.execute(query, values).fetchone())
        return json.loads(row[0]) if row else None

    def _actor(self, operator: object) -> Json | None:
        who = self._operators.by_id.get(str(operator))
        return who.actor if who is not None else None


def words(session: Session) -> list[str]:
    """The command line, as much of it as an entry keeps."""
    out, room = [], limits.JOURNAL_TEXT_MAX
    for word in session.manifest["command"]:
        out.append(str(word)[:room])
        room -= len(out[-1])
        if room <= 0:
            break
    return out


def _newest_at(db: sqlite3.Connection) -> float:
    """When the newest entry was made; 0 where there is none."""
    row = db.execute("SELECT body FROM entries ORDER BY n DESC LIMIT 1").fetchone()
    return float(json.loads(row[0]).get("at") or 0.0) if row else 0.0
