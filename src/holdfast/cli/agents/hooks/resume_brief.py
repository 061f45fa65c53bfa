"""The resume brief for a new conversation, and the run that this process works on."""

from __future__ import annotations

import os

from ....model.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ....client._sync.host import Host

TOKENS_MAX = 2000  # of the model's context; with what Claude Code takes from a hook, 10,000 characters
_BEFORE = "The status of the work, from Holdfast's record and checked against what runs now (again: hold resume)."


def run_of(host: Host) -> str | None:
    """The run that this process works on: HOLDFAST_RUN, or the active run of HOLDFAST_TASK."""
    run, task = os.environ.get("HOLDFAST_RUN"), os.environ.get("HOLDFAST_TASK")
    if run or not task:
        return run or None
    project = os.environ.get("HOLDFAST_PROJECT") or None
    found = host.work.call("task_show", task=task, project=project, cwd=os.getcwd()).get("run_id")
    return str(found) if found else None


def of(host: Host) -> str:
    """The brief of the run or task that this process works on, else of the current project; empty without work."""
    target = os.environ.get("HOLDFAST_TASK") or os.environ.get("HOLDFAST_RUN") or None  # a task's brief has more
    try:
        told = host.work.resume(target, max_tokens=TOKENS_MAX)
    except HoldfastError:
        return ""  # several projects, none of this folder: nothing to continue here
    if told["next_action"]["kind"] == "done" and told.get("project") is None and target is None:
        return ""
    return f"{_BEFORE}\n\n{told['text']}"
