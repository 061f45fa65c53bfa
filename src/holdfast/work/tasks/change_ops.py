"""The call that lists what attempts made: part of `Work`, in a file of its own."""

from __future__ import annotations

from typing import Any

from ...model.times import rfc3339
from ...model.work.file_changes import listed
from ...store.base import Query, Store, Transaction
from ...wire import json_values
from . import rows as task_rows

Json = dict[str, Any]
_LISTED_MAX = 1000  # attempts in one answer, the latest: each may name hundreds of files
# Values are kept as JSON without spaces: these find a list of files that is not empty.
_SOME = ('%"created":[{%', '%"changed":[{%')


class ChangeCalls:
    """Needs what `Work` has: `store`."""

    store: Store

    async def changes_ls(
        self, *, task: str | None = None, project: str | None = None, cwd: str | None = None, by: str | None = None
    ) -> list[Json]:
        """Attempts that created or changed files, the latest first; of one task, or of all."""
        key = None if task is None else await self.store.read(lambda: task_rows.find_key(task, project, cwd))
        return await self.store.read(lambda: _created(key))


def _created(key: str | None) -> Transaction[list[Json]]:
    only = "" if key is None else " AND a.task = ?"
    rows = yield Query(
        "SELECT a.task, a.n, a.changes, a.created_at, p.root, c.body, (SELECT MIN(r.id) FROM run r"
        " WHERE r.attempt = a.id AND r.forked_from IS NULL) FROM attempt a JOIN task t ON t.key = a.task"
        " JOIN project p ON p.name = t.project JOIN contract c ON c.task = t.key AND c.version = t.contract"
        f" WHERE (a.changes LIKE ? OR a.changes LIKE ?){only} ORDER BY a.created_at DESC LIMIT ?",
        (*_SOME, *(() if key is None else (key,)), _LISTED_MAX),
    )
    return [
        {
            "task": task,
            "n": n,
            "run": run,
            "root": root,
            **_lists(json_values.decode(changes)),
            "artifacts": json_values.decode(contract)["artifacts"],
            "at": rfc3339(at / 1e6),
        }
        for task, n, changes, at, root, contract, run in rows
    ]


def _lists(changes: Any) -> Json:
    """As far as it is a list of files: whoever made the attempt may have noted anything."""
    return {
        kind: [one for one in listed(changes, kind) if {"after", "size"} <= one.keys()]
        for kind in ("created", "changed")
    }
