"""What a session has to do with the work: part of `Work`, in a file of its own."""

from __future__ import annotations

from typing import Any

from ..model.times import rfc3339_us
from ..model.work import check_word
from ..store.base import Query, Store, Transaction

Json = dict[str, Any]
_LISTED_MAX = 1000  # checkpoints in one answer: marks on one line


class SessionCalls:
    """Needs what `Work` has: `store`."""

    store: Store

    async def session_checkpoints(self, *, session: str, by: str | None = None) -> list[Json]:
        """Checkpoints of the runs that used a session, made since they did; the latest ones, oldest first."""
        check_word("a session", session)
        return await self.store.read(lambda: _checkpoints(session))


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
