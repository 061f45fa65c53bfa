"""Files that an attempt made: its changes shown, and those nobody registered adopted as artifacts or removed."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from ...model.errors import HoldfastError, not_found
from ...model.work.file_changes import Scope, shortened
from .._sync.host import Host
from ..current_project import context
from . import snapshot

Json = dict[str, Any]
BEFORE, LIST, PATCH = "changes/before", "changes/list.json", "changes/patch"
_OURS = frozenset({BEFORE, LIST, PATCH, "brief.md"})  # kept by the runner: a copy of one is no registered file


def changes_of(host: Host, task: str, n: int | None, project: str | None = None) -> tuple[Json, bytes]:
    """What an attempt did to its files, and the patch: as it was recorded; else, where it began, as things are now."""
    shown = host.work.call("task_show", task=task, **context(project))
    picked = [a for a in shown["attempts"] if n in (None, a["n"])]
    if not picked:
        which = f"no attempt {n}" if n is not None else "no attempt yet"
        raise not_found(f"task {shown['task_id']} has {which}", f"hold task show {shown['task_id']}")
    attempt = picked[-1]
    about = {
        "task_id": shown["task_id"],
        "project": shown["project"],
        "attempt": attempt["n"],
        "run_id": attempt["run_id"],
        "backend": attempt["backend"],
    }
    named = {a["name"] for a in host.work.call("artifact_ls", run=attempt["run_id"])}
    if LIST in named and PATCH in named:
        told = json.loads(host.work.artifact(attempt["run_id"], LIST))
        patch, recorded = host.work.artifact(attempt["run_id"], PATCH), True
    elif BEFORE in named:
        before = host.work.artifact(attempt["run_id"], BEFORE)
        told, patch = snapshot.outcome(before, shown["contract"]["artifacts"], host.home.path)
        recorded = False
    else:
        empty: Json = {"created": [], "changed": [], "deleted": [], "limits": ["its files were not looked at"]}
        told, patch, recorded = empty, b"", False
    counts = shortened(told)["counts"]
    lost = [o["path"] for o in orphans(host, task, project) if o["attempt"] == attempt["n"]]
    return {**about, **told, "counts": counts, "recorded": recorded, "orphans": lost}, patch


def orphans(host: Host, task: str | None = None, project: str | None = None) -> list[Json]:
    """Files that attempts created, that are still as they made them, and that no contract, artifact or git knows."""
    where = context(project) if task is not None else {}
    attempts: list[Json] = host.work.call("changes_ls", task=task, **where)
    last: dict[tuple[str, str], Json] = {}  # (task, path) -> how the task's latest attempt left it
    for made in reversed(attempts):
        last |= {(made["task"], one["path"]): one for one in (*made["created"], *made["changed"])}
    found: list[Json] = []
    tracked: dict[str, set[str]] = {}  # root -> what git knows
    for made in attempts:
        root = made["root"]
        if root not in tracked:
            tracked[root] = snapshot.tracked(root) if os.path.isdir(root) else set()
        expected = Scope(made["artifacts"] or ["\0"])
        registered = {a["sha256"] for a in host.work.call("artifact_ls", run=made["run"]) if a["name"] not in _OURS}
        for path in [one["path"] for one in made["created"]]:
            one = last[made["task"], path]
            if path in tracked[root] or path in expected or one["after"] in registered or not unchanged(root, one):
                continue
            found.append(
                {
                    "kind": "file",
                    "task": made["task"],
                    "attempt": made["n"],
                    "run": made["run"],
                    "path": path,
                    "root": root,
                    "sha256": one["after"],
                    "size": one["size"],
                    "at": made["at"],
                }
            )
    return found


def unchanged(root: str, one: Json) -> bool:
    """Whether the file is still the one that was made; a link is known by what it says."""
    full = os.path.join(root, one["path"])
    try:
        if os.path.islink(full):
            data = os.fsencode(os.readlink(full))
        elif os.path.getsize(full) != one["size"]:
            return False
        else:
            data = snapshot.read_file(full)
    except OSError:
        return False
    return one["after"] is not None and hashlib.sha256(data).hexdigest() == one["after"]


def picked(host: Host, task: str, paths: list[str], project: str | None = None) -> list[Json]:
    """The orphans that are meant, by their path from the root; without any, all of the task."""
    found = {o["path"]: o for o in reversed(orphans(host, task, project))}
    if not paths:
        return list(found.values())
    for path in paths:
        if path not in found:
            raise not_found(
                f"{path[:200]!r} is no orphan of task {task}",
                "hold task changes lists them; a file that somebody else changed since is none",
            )
    return [found[path] for path in paths]


def adopt(host: Host, orphan: Json) -> Json:
    """Keep it as an artifact of the run that made it, under its path."""
    try:
        content = snapshot.read_file(_inside(orphan))
    except OSError as e:  # a link, above all: what it leads to was not made by the attempt
        raise HoldfastError("failed", f"cannot read {orphan['path']}: {e.strerror}", "look at it first") from None
    put: Json = host.work.put_artifact(orphan["run"], orphan["path"], content)
    return put


def discard(host: Host, orphan: Json) -> None:
    """Remove it, if it is still what the attempt made; the record of it stays."""
    if not unchanged(orphan["root"], {"path": orphan["path"], "after": orphan["sha256"], "size": orphan["size"]}):
        raise HoldfastError("conflict", f"{orphan['path']} was changed meanwhile", "look at it first")
    os.unlink(_inside(orphan))
    said = f"removed {orphan['path']}, which was made and never registered"
    host.work.call("log_append", run=orphan["run"], kind="note", body=said)


def _inside(orphan: Json) -> str:
    """Its path, if it leads where it did: no folder on the way has become a link out of the project."""
    full = os.path.join(orphan["root"], orphan["path"])
    root = os.path.realpath(orphan["root"])
    if os.path.commonpath([root, os.path.realpath(os.path.dirname(full))]) != root:
        raise HoldfastError("not_allowed", f"{orphan['path']} leads out of the project", "remove it by hand")
    return full
