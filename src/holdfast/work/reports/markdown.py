"""A report in words: what was done in a time span, by whom, with what result. Pure."""

from __future__ import annotations

from typing import Any

from ..briefs.markdown import line

Json = dict[str, Any]
_TITLE = 120  # characters of a title in a list
_EVENTS = {
    "add": "added",
    "start": "started",
    "done": "done",
    "fail": "failed attempts",
    "give_up": "given up",
    "block": "blocked",
    "cancel": "cancelled",
}


def empty(report: Json) -> bool:
    return not (report["tasks"] or report["runs"] or report["people"] or report["totals"]["attempts"]["begun"])


def nothing(report: Json) -> str:
    whose = f" in project {report['project']}" if report["project"] else ""
    return f"no work{whose} from {report['since']} to {report['until']}"


def heading(report: Json) -> str:
    what = f"Project {report['project']}" if report["project"] else "Work"
    if report["task"]:
        what = f"Task {report['task']}"
    return f"{what}, {report['since']} to {report['until']}"


def summary(report: Json) -> list[str]:
    """The counts, a line each."""
    totals = report["totals"]
    events, attempts = totals["events"], dict(totals["attempts"])
    begun = attempts.pop("begun")
    lines = [f"{totals['tasks']} task{_s(totals['tasks'])}" + _list(events, _EVENTS)]
    lines.append(f"{begun} attempt{_s(begun)} begun" + _list(attempts, {k: k for k in attempts}))
    checks = totals["verifications"]
    n = sum(checks.values())
    lines.append(f"{n} verification{_s(n)}" + _list(checks, {k: k for k in checks}))
    steps = totals["steps"]
    n = sum(steps.values())
    lines.append(f"{n} step{_s(n)} ended" + _list(steps, {k: k for k in steps}))
    if report["runs"]:
        lines.append(f"{len(report['runs'])} run{_s(len(report['runs']))} outside of projects")
    return lines


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _list(counts: Json, words: dict[str, str]) -> str:
    told = [f"{counts[name]} {word.replace('_', ' ')}" for name, word in words.items() if counts.get(name)]
    return f": {', '.join(told)}" if told else ""


def result(attempt: Json) -> str:
    """How an attempt went, in a few words."""
    text = attempt["outcome"] or "under way"
    if attempt.get("failure_type"):
        text += f", {attempt['failure_type']}"
        text += f" ({attempt['convergence']})" if attempt.get("convergence") else ""
    if attempt.get("verified") is not None:
        text += ", verified" if attempt["verified"] else ", verification failed"
    return text


def markdown(report: Json) -> str:
    if empty(report):
        return nothing(report) + "\n"
    text = f"# {line(heading(report))}\n\n" + "".join(f"- {each}\n" for each in summary(report))
    if report["people"]:
        text += "\n## By whom\n\n"
        for who in report["people"]:
            text += (
                f"- {_plain(who['name'])}: {who['done']} done, {who['failed']} failed, {who['events']} changes of"
                f" tasks, {who['entries']} log entries\n"
            )
    if report["tasks"]:
        text += "\n## Tasks\n\n"
    for task in report["tasks"]:
        text += f"- {_plain(task['key'])} {_plain(task['title'])}: {task['status']}\n"
        for attempt in task["attempts"]:
            text += f"  - attempt {attempt['n']}{_by(attempt)}: {result(attempt)}{_detail(attempt)}\n"
        last = task["events"][-1] if task["events"] else None
        if last and last["why"]:
            text += f"  - {last['event']} by {_plain(last['by'])}: {_plain(last['why'])}\n"
    if report["omitted"]["tasks"]:
        text += f"- {report['omitted']['tasks']} more: choose a shorter span\n"
    if report["runs"]:
        text += "\n## Runs outside of projects\n\n"
    for run in report["runs"]:
        what = _plain(run["task"] or run["job"] or "")
        steps = ", ".join(f"{n} {state}" for state, n in run["steps"].items()) or "no steps"
        text += f"- {run['run']} {what}: {run['state']}; {steps}; begun by {_plain(run['by'] or '-')}\n"
    return text


def _by(attempt: Json) -> str:
    who = attempt["backend"] or attempt["worker"]
    return f" by {_plain(who)}" if who else ""


def _detail(attempt: Json) -> str:
    return f". {_plain(attempt['failure_detail'])}" if attempt.get("failure_detail") else ""


def _plain(text: object) -> str:
    """Somebody's words in one line of Markdown, in which they stay words."""
    return "".join("\\" + c if c in "\\`*_[]<>#|" else c for c in line(text, _TITLE))
