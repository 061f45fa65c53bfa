"""The commonest writes in as few statements as SQLite can do them: one for the step, one for its entry in the log.

The first of them checks the lease and does its work only where things are as foreseen. Otherwise it changes nothing,
and the transaction itself is run and says what is the matter. There is one writer, and these run under its lock: what
the first one saw is still so for the others.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from .base import Quick
from .sqlite_file import clock

# Whoever writes has the lease: (run, epoch, now).
_OURS = (
    "FROM attempt WHERE id = (SELECT attempt FROM run WHERE id = ?) AND epoch = ? AND ended_at IS NULL"
    " AND lease_until > ?"
)
_INSERT = (
    "INSERT INTO step (run, key, epoch, effect, action, args_hash, args, idem_key, begin_request, session, exec_id,"
    " result, end_request, begun_at, state, ended_at, tries)"
    f" SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1 {_OURS}"
)
_INSERT_NEW = _INSERT + " ON CONFLICT DO NOTHING"
_INSERT_AFTER = (
    _INSERT + " AND EXISTS (SELECT 1 FROM step WHERE run = ? AND key = ? AND state = 'open') ON CONFLICT DO NOTHING"
)
_SET_DONE = (
    "UPDATE step SET state = 'done', result = ?, error = NULL, ended_at = ?, end_request = ?, epoch = ?"
    " WHERE run = ? AND key = ?"
)
_SET_DONE_OURS = _SET_DONE + f" AND state = 'open' AND EXISTS (SELECT 1 {_OURS})"
_NOTE = (
    "INSERT INTO log (run, seq, kind, at, by_whom, epoch, step, body)"
    " VALUES (?, (SELECT COALESCE(MAX(seq), 0) + 1 FROM log WHERE run = ?), ?, ?, ?, ?, ?, ?)"
)


def done(quick: Quick, database: sqlite3.Connection) -> bool:
    """Do what was foreseen; False: it is not so, and nothing was changed. Under the write lock."""
    run, key, epoch, by, body, *rest = quick.args
    now = clock()  # once the lock is held
    execute, ours = database.execute, (run, epoch, now)
    if quick.name == "step_ended":
        result, request = rest
        given = (result, now, request, epoch, run, key, *ours)
        if execute(_SET_DONE_OURS, given).rowcount != 1:
            return False
        execute(_NOTE, (run, run, "observation", now, by, epoch, key, body))
        return True
    if quick.name == "step_following":
        *columns, ended, result, request, ended_body = rest
        given = (run, key, epoch, *columns, now, "open", None, *ours, run, ended)
        if execute(_INSERT_AFTER, given).rowcount != 1:
            return False
        execute(_SET_DONE, (result, now, request, epoch, run, ended))
        execute(_NOTE, (run, run, "observation", now, by, epoch, ended, ended_body))
        execute(_NOTE, (run, run, "action", now, by, epoch, key, body))
        return True
    state, kind, until = _INSERTED[quick.name]
    if execute(_INSERT_NEW, (run, key, epoch, *rest, now, state, now if until else None, *ours)).rowcount != 1:
        return False
    execute(_NOTE, (run, run, kind, now, by, epoch, key, body))
    return True


_INSERTED: dict[str, tuple[str, str, Any]] = {
    "step_begun": ("open", "action", False),
    "step_done": ("done", "observation", True),
}
