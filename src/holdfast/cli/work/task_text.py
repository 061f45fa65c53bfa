"""Renders a task as text: its status, contract, attempts and next action."""

from __future__ import annotations

from ..ui import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Json = dict[str, Any]

_TAIL_LINES = 8  # lines of a failed command's output; hold logs has all


def lines(task: Json) -> Iterator[str]:
    for line in _lines(task):
        yield printing.safe(line)


def _lines(task: Json) -> Iterator[str]:
    yield f"{task['task_id']}  {task['title']}"
    yield f"  {task['status']}, phase {task['phase']}, project {task['project']}{_held(task)}"
    if task["status"] == "blocked":
        yield from _blocked(task)
    if task["waits_for"]:
        gone = task["waits_for_cancelled"]
        yield "  waits for " + ", ".join(("cancelled " if id in gone else "") + id for id in task["waits_for"])
    if task["held_back"]:
        back = task["held_back"]
        yield f"  held back: its scope {back['scope']} overlaps {back['overlaps']} of {back['beside']}, under way"
    yield from _contract(task)
    if task["attempts"]:
        yield "attempts"
    for attempt in task["attempts"]:
        yield from _attempt(attempt)
    for step in task["in_doubt"]:
        yield f"in doubt: step {step['key']} of {step['run_id']}"
    if task["sessions"]:
        yield "sessions: " + ", ".join(s["session"] for s in task["sessions"])
    yield f"next: {_next(task)}"


def _held(task: Json) -> str:
    if task["lease_until"]:
        return f", held by {task['worker']} until {task['lease_until']}"
    return f", by hand: {task['worker']}" if task["worker"] else ""


def _blocked(task: Json) -> Iterator[str]:
    found = task["classification"]
    by = f" by {task['blocked_by']}" if task["blocked_by"] else ""
    yield f"blocked{by} after {task['attempt_count']} attempts: {task['why'] or '-'}"
    if task["question"]:
        yield f"  question: {task['question']}"
    yield f"  failure: {found['failure_type']}, {found['convergence']}"
    for name, label in (("failure_detail", "detail"), ("suggested_focus", "focus")):
        if found[name]:
            yield from _indented(f"  {label}: ", found[name])
    if task["run_id"]:
        yield f"  run: {task['run_id']} (hold history {task['run_id']})"


def _indented(label: str, text: str) -> Iterator[str]:
    first, *rest = text.splitlines() or [""]
    yield label + first
    for line in rest:
        yield " " * len(label) + line


def _contract(task: Json) -> Iterator[str]:
    contract = task["contract"]
    yield f"contract, version {task['contract_version']}"
    yield from _indented("  goal: ", contract["goal"])
    for name in ("constraints", "acceptance", "artifacts"):
        for text in contract[name]:
            yield from _indented(f"  {name}: ", text)
    if contract["scope"] != ["**"]:
        yield f"  scope: {', '.join(contract['scope'])}"
    for check in task["checks"]:
        yield f"  verification: {_command(check['command'])}"
    if task["backends"]:
        yield f"  backends: {', '.join(task['backends'])}"
    if len(task["contract_versions"]) > 1:
        last = task["contract_versions"][-1]
        yield f"  changed {last['at']} by {last['by']}" + (f": {last['why']}" if last["why"] else "")


def _command(command: str | list[str]) -> str:
    return command if isinstance(command, str) else " ".join(command)


def _attempt(attempt: Json) -> Iterator[str]:
    who = attempt["backend"] or attempt["worker"] or "by hand"
    span = f"{attempt['begun_at']} to {attempt['ended_at']}" if attempt["ended_at"] else f"since {attempt['begun_at']}"
    yield f"  {attempt['n']}. {attempt['outcome'] or 'open'}, {who}, {span}, {attempt['run_id']}"
    found = attempt["classification"]
    if found:
        what = f"{found['failure_type']}, {found['convergence']}"
        yield from _indented("     ", what + (f": {found['failure_detail']}" if found["failure_detail"] else ""))
    for result in (attempt["verification"] or {}).get("results", ()):
        code = "" if result["exit_code"] in (0, None) else f" with exit code {result['exit_code']}"
        yield f"     {result['state']}{code}: {_command(result['command'])}"
        if result["state"] != "passed":
            for line in (result.get("tail") or "").splitlines()[-_TAIL_LINES:]:
                yield f"       | {line}"
            if result.get("session"):
                yield f"       hold logs {result['session']}"


def _next(task: Json) -> str:
    id = task["task_id"]
    if task["waits_for_cancelled"] and task["status"] == "pending":
        return f"hold task retry {task['waits_for_cancelled'][0]}, or hold task edit {id} --no-after"
    if task["in_doubt"]:
        return f"hold step settle {task['in_doubt'][0]['run_id']} {task['in_doubt'][0]['key']} --done|--not-done"
    return {
        "ready": f"hold task start {id}",
        "pending": f"hold task show {task['waits_for'][0]}" if task["waits_for"] else "hold project show",
        "active": f"hold task done {id}",
        "paused": f"hold task start {id}",
        "blocked": f"hold task unblock {id} --why ANSWER, then hold task start {id} [--backend NAME]",
        "failed": f"hold task start {id}",
        "done": "nothing: it is done",
        "cancelled": f"hold task retry {id} reopens it",
    }[task["status"]]
