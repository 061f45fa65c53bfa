"""The commonest writes in as few statements as SQLite can do them: a look at the run, the step, its entry in the log.

Where things are not as foreseen nothing is changed, and the transaction itself is run and says what is the matter.
There is one writer, and these run under its lock: what the first one saw is still so for the others, and, of a
transaction that stays open, for all that come in it (`seen`).
"""

from __future__ import annotations

import sqlite3
from typing import Any

from .base import Quick

# Who has the lease, until when, and where the log ends; nothing where the run has ended.
_SEEN = (
    "SELECT epoch, lease_until, (SELECT COALESCE(MAX(seq), 0) FROM log WHERE run = ?1) FROM attempt"
    " WHERE id = (SELECT attempt FROM run WHERE id = ?1) AND ended_at IS NULL"
)
_STATE = "SELECT state FROM step WHERE run = ? AND key = ?"
_INSERT = (
    "INSERT INTO step (run, key, epoch, effect, action, args_hash, args, idem_key, begin_request, session, exec_id,"
    " result, end_request, begun_at, state, ended_at, tries)"
)
_INSERT_NEW = _INSERT + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING"
_INSERT_AFTER = (
    _INSERT + " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1"
    " WHERE EXISTS (SELECT 1 FROM step WHERE run = ? AND key = ? AND state = 'open') ON CONFLICT DO NOTHING"
)
_SET_DONE = (
    "UPDATE step SET state = 'done', result = ?, error = NULL, ended_at = ?, end_request = ?, epoch = ?"
    " WHERE run = ? AND key = ? AND state = 'open'"
)
_NOTE = "INSERT INTO log (run, seq, kind, at, by_whom, epoch, step, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class Seen:
    """A run as a transaction found it: who has its lease, until when. `end` goes on with its log."""

    __slots__ = ("end", "epoch", "until")

    def __init__(self, epoch: int, until: int, end: int) -> None:
        self.epoch, self.until, self.end = epoch, until, end


def sure(database: sqlite3.Connection, quick: Quick, now: int, seen: dict[str, Seen]) -> bool:
    """Whether `done` will do it, in this transaction and with nothing in between."""
    run, key, epoch = quick.args[:3]
    if _ours(database, run, epoch, now, seen) is None:
        return False
    state = _state(database, run, key)
    if quick.name == "step_ended":
        return state == "open"
    return state is None and (
        quick.name != "step_following" or _state(database, run, quick.args[-4]) == "open"
    )


def done(database: sqlite3.Connection, quick: Quick, now: int, seen: dict[str, Seen] | None = None) -> bool:
    """Do what was foreseen; False: it is not so, and nothing was changed. `now` was read under the write lock."""
    run, key, epoch, by, body, *rest = quick.args
    found = _ours(database, run, epoch, now, {} if seen is None else seen)
    if found is None:
        return False
    execute = database.execute
    if quick.name == "step_ended":
        result, request = rest
        if execute(_SET_DONE, (result, now, request, epoch, run, key)).rowcount != 1:
            return False
        notes = [("observation", key, body)]
    elif quick.name == "step_following":
        *columns, ended, result, request, ended_body = rest
        given = (run, key, epoch, *columns, now, "open", None, run, ended)
        if execute(_INSERT_AFTER, given).rowcount != 1:
            return False
        execute(_SET_DONE, (result, now, request, epoch, run, ended))
        notes = [("observation", ended, ended_body), ("action", key, body)]
    else:
        state, kind, until = _INSERTED[quick.name]
        if execute(_INSERT_NEW, (run, key, epoch, *rest, now, state, now if until else None)).rowcount != 1:
            return False
        notes = [(kind, key, body)]
    for kind, step, text in notes:
        found.end += 1
        execute(_NOTE, (run, found.end, kind, now, by, epoch, step, text))
    return True


def _ours(database: sqlite3.Connection, run: str, epoch: int, now: int, seen: dict[str, Seen]) -> Seen | None:
    """The run, if whoever writes has its lease."""
    found = seen.get(run)
    if found is None:
        row = database.execute(_SEEN, (run,)).fetchone()
        if row is None:
            return None
        found = seen[run] = Seen(*row)
    return found if found.epoch == epoch and now < found.until else None


def _state(database: sqlite3.Connection, run: str, key: str) -> str | None:
    row = database.execute(_STATE, (run, key)).fetchone()
    return None if row is None else str(row[0])


_INSERTED: dict[str, tuple[str, str, Any]] = {
    "step_begun": ("open", "action", False),
    "step_done": ("done", "observation", True),
}
