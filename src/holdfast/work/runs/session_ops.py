"""What a session has to do with the work: part of `Work`, in a file of its own."""

from __future__ import annotations

from typing import Any

from ...model.times import rfc3339_us
from ...model.work.effects import check_word
from ...model.work.file_changes import listed
from ...store.base import Query, Store, Transaction
from ...wire import json_values

Json = dict[str, Any]
_LISTED_MAX = 1000  # checkpoints in one answer: marks on one line
_ATTEMPTS_MAX = 20  # whose files are told, the latest: each may name hundreds
_KINDS = ("created", "changed", "deleted")


class SessionCalls:
    """Needs what `Work` has: `store`."""

    store: Store

    async def session_checkpoints(self, *, session: str, by: str | None = None) -> list[Json]:
        """Checkpoints of the runs that used a session, made since they did; the latest ones, oldest first."""
        check_word("a session", session)
        return await self.store.read(lambda: _checkpoints(session))

    async def session_changes(self, *, session: str, by: str | None = None) -> list[Json]:
        """What attempts that ran in a session did to their files, as it was noted when each ended; the latest first."""
        check_word("a session", session)
        return await self.store.read(lambda: _changes(session))


def _changes(session: str) -> Transaction[list[Json]]:
    rows = yield Query(
        "SELECT a.task, a.n, MIN(r.id), a.changes, p.root, a.created_at FROM run_session u JOIN run r ON r.id = u.run"
        " JOIN attempt a ON a.id = r.attempt JOIN task t ON t.key = a.task JOIN project p ON p.name = t.project"
        " WHERE u.session = ? AND a.changes IS NOT NULL GROUP BY a.id, a.task, a.n, a.changes, p.root, a.created_at"
        " ORDER BY a.created_at DESC LIMIT ?",
        (session, _ATTEMPTS_MAX),
    )
    return [_told(*row) for row in rows]


def _told(task: str, n: int, run: str, noted: str, root: str, at: int) -> Json:
    """As far as it is a list of files: whoever made the attempt may have noted anything."""
    changes = json_values.decode(noted)
    known = changes if isinstance(changes, dict) else {}
    return {
        "task": task,
        "attempt": n,
        "run": run,
        "root": str(known.get("root") or root),
        "begun_at": rfc3339_us(at),
        **{kind: [one["path"] for one in listed(changes, kind)] for kind in _KINDS},
        "omitted": known["omitted"] if isinstance(known.get("omitted"), int) else 0,
    }


def _checkpoints(session: str) -> Transaction[list[Json]]:
    rows = yield Query(
        "SELECT c.run, c.seq, c.at, c.kind, c.label, c.by_whom FROM checkpoint c JOIN"
        " (SELECT run, MIN(at) AS since FROM run_session WHERE session = ? GROUP BY run) used"
        " ON used.run = c.run AND c.at >= used.since ORDER BY c.at DESC, c.run, c.seq DESC LIMIT ?",
        (session, _LISTED_MAX),
    )
    return [
        {"run": run, "seq": seq, "at": rfc3339_us(at), "kind": kind, "label": label, "by": by}
        for run, seq, at, kind, label, by in reversed(rows)
    ]
