"""What to do next, from what is known of a task or a run: one action that a program can follow. Pure."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
_RESTARTS_MAX = 3  # of a session since something was claimed of it: what ends each time is not revived by another


def action(kind: str, why: str, *command: str, **more: Any) -> Json:
    """`command` is empty where nothing is to be run; `needs` names what only the follower can fill in."""
    return {"kind": kind, "command": list(command), "why": why, **{k: v for k, v in more.items() if v is not None}}


def decide(facts: Json) -> Json:
    """In this order: what is in doubt, what no longer holds, what waits for a person, what is left to do, what proves
    it. A task or a run that is finished says so."""
    task, run = facts.get("task"), facts.get("run")
    # What an ended attempt left can no longer be settled; the brief says that it is there.
    unsettled = {k: [s for s in facts[k] if s.get("run_state", "active") == "active"] for k in ("in_doubt", "open")}
    facts = {**facts, **unsettled}
    if task is not None and task["status"] not in ("active", "paused"):
        found = _idle_task(facts, task)
        if found is not None:
            return found
    if run is None or run["state"] not in ("active", "parked"):
        before = _in_the_way(task) if task is not None and task["status"] == "paused" else None
        return before or _without_run(task, run)
    ids: Json = {"run": run["run"], "task": task["id"] if task else run.get("task")}
    worked = run["leased"] and not str(run["worker"]).startswith("hand:")
    if facts["in_doubt"] and not (worked and not run.get("waits_for")):
        return _settle(facts["in_doubt"][0], ids)
    if (run.get("parked") or {}).get("reason") == "crashes":
        why = f"{run['crashes']} workers died at it: find out why, then have it tried again"
        return action("retry", why, "hold", "work", "retry", run["run"], **ids)
    if worked:
        why = f"{run['worker']} is at it; its lease ends at {run['lease_until']} unless it is renewed"
        return action("wait", why, **ids)
    return (
        _revive(facts, ids)
        or _asked(facts, ids)
        or _left_open(facts, run, ids)
        or _pending(facts, run, ids)
        or _prove(facts, task, run, ids)
    )


def nothing(facts: Json) -> Json:
    """Of a project or a store in which it is nobody's turn."""
    project = facts.get("project")
    if project is None:
        return action("done", "no run is under way")
    if facts["counts"].get("pending"):
        return action(
            "wait",
            "what is left waits for tasks that were cancelled, or for another phase",
            "hold",
            "project",
            "show",
            project["name"],
        )
    if any(facts["counts"].values()):
        return action("done", "nothing is left to do")
    return action(
        "add_task",
        "the project has no tasks yet",
        "hold",
        "task",
        "add",
        "TITLE",
        "--project",
        project["name"],
        needs=["TITLE"],
    )


# -- tasks without a run under way -----------------------------------------------------------------------------------


def _idle_task(facts: Json, task: Json) -> Json | None:
    id, status = task["id"], task["status"]
    command = ["hold", "task", "start", task["key"]]
    if status in ("done", "cancelled"):
        return action("done", f"the task is {status}", task=id)
    if status == "blocked":
        if facts["in_doubt"]:
            step = facts["in_doubt"][0]
            return _settle(step, {"run": step["run"], "task": id})
        report = task.get("report") or {}
        asked = report.get("question")
        unblock = ("hold", "task", "unblock", task["key"], "--why", "WHY")
        if asked:
            return action("answer", f"it waits for an answer: {asked}", *unblock, task=id, needs=["WHY"])
        why = report.get("why") or "it was blocked"
        return action("unblock", f"blocked: {why}", *unblock, task=id, needs=["WHY"])
    if status == "ready":
        return action("start_task", "nothing is in its way", *command, task=id)
    found = _in_the_way(task)
    if found is None and status == "failed":
        return action("start_task", "the last attempt failed and may be tried again", *command, task=id)
    return found or action("wait", f"phase {task['phase']} has not begun", task=id)


def _in_the_way(task: Json) -> Json | None:
    """What comes before a task that nobody is at: starting it would be refused."""
    needs = task["needs"]
    left = [need for need in needs if need["status"] != "cancelled"]
    if left:
        why = f"{len(needs)} tasks come first; {left[0]['id']} is {left[0]['status']}"
        return action("resume_task", why, "hold", "resume", left[0]["key"], "--json", task=left[0]["id"])
    if needs:  # nobody will ever finish it: a person says whether it is still wanted
        again = ["hold", "task", "retry", needs[0]["key"]]
        choices = {"retry": again, "drop": ["hold", "task", "edit", task["key"], "--no-after"]}
        why = f"it waits for {needs[0]['id']}, which was cancelled: bring that back, or wait for it no longer"
        return action("unblock", why, *again, choices=choices, task=task["id"])
    if task["phase"] != task.get("active_phase", task["phase"]):
        return action("wait", f"phase {task['phase']} is not the active one", task=task["id"])
    return None


def _without_run(task: Json | None, run: Json | None) -> Json:
    if task is None:
        state = run["state"] if run else "not there"
        return action("done", f"the run is {state}", run=run["run"] if run else None)
    if run is not None and run["state"] == "done":
        return action(
            "rerun_verification",
            "its run is done; the verification decides",
            "hold",
            "task",
            "done",
            task["key"],
            task=task["id"],
            run=run["run"],
        )
    return action("start_task", "no attempt is under way", "hold", "task", "start", task["key"], task=task["id"])


# -- a run under way -------------------------------------------------------------------------------------------------


def _settle(step: Json, ids: Json) -> Json:
    run, key = step["run"], step["key"]
    about = {**ids, "run": run, "step": key}
    settle = ["hold", "step", "settle", run, key]
    if step.get("exec_id"):
        why = "a command in a session whose end its host recorded"
        return action("settle_step", why, *settle, "--from-exec", **about)
    if step["effect"] == "idempotent":
        again = ["hold", "step", "begin", run, key, "--effect", "idempotent"]
        if step.get("args") is not None:
            again += ["--args", json.dumps(step["args"])]
        return action("continue_run", "an idempotent step may run again under its key", *again, **about)
    proof = ["--evidence", "EVIDENCE"]
    owner = f"; {step['owner']} is to settle it" if step.get("owner") else ""
    why = f"{step.get('action') or key} was begun at {step['begun_at']} and nobody saw how it ended{owner}"
    choices = {said: [*settle, f"--{said.replace('_', '-')}", *proof] for said in ("done", "not_done", "failed")}
    return action("settle_step", why, *choices["not_done"], choices=choices, needs=["EVIDENCE"], **about)


def _revive(facts: Json, ids: Json) -> Json | None:
    """A claim that drifted because its session ended: start that again, unless that was tried and did not help."""
    for claim in facts["claims"]:
        evidence = claim["evidence"]
        state, name = evidence.get("session_state"), evidence.get("session")
        now = evidence.get("generation") or 0
        if now - (claim.get("seen", {}).get("generation") or now) >= _RESTARTS_MAX:
            continue
        if claim["state"] == "drifted" and state in ("exited", "lost", "reaped") and name:
            why = f"{claim['claim']}: {claim['said']}"
            return action("restart_session", why, "hold", "restart", name, session=name, claim=claim["id"], **ids)
    return None


def _asked(facts: Json, ids: Json) -> Json | None:
    for ask in facts["asks"]:
        words = ("hold", "answer", ask["id"], "TEXT")
        if ask["kind"] == "approval":
            words = ("hold", "answer", ask["id"], "--approve")
        why = f"somebody is asked: {ask['text']}"
        needs = None if ask["kind"] == "approval" else ["TEXT"]
        return action("answer", why, *words, ask=ask["id"], session=ask["session"], needs=needs, **ids)
    return None


def _left_open(facts: Json, run: Json, ids: Json) -> Json | None:
    if not facts["open"]:
        return None
    step = facts["open"][0]
    if not run["leased"]:  # whoever began it is gone: it is in doubt as soon as somebody goes on
        return _settle(step, ids)
    ends = ["hold", "step", "end", run["run"], step["key"]]
    fails = ["hold", "step", "fail", run["run"], step["key"], "--error", "ERROR"]
    why = f"{run['worker']} began it by hand at {step['begun_at']}: say how it ended"
    return action("continue_run", why, *ends, step=step["key"], choices={"end": ends, "fail": fails}, **ids)


def _pending(facts: Json, run: Json, ids: Json) -> Json | None:
    """The next entry of the plan, then the next item."""
    if run.get("job"):
        return action("wait", f"a worker that knows the job {run['job']} goes on with it", **ids)
    left = [entry for entry in facts["plan"] if entry["state"] != "done"]
    if left:
        entry = left[0]
        entry = {**entry, "n": facts["plan"].index(entry)}
        why = f"next in the plan ({len(facts['plan']) - len(left)} of {len(facts['plan'])} done): {entry['text']}"
        return _do(run, entry, why, ids)
    items = run.get("items") or {}
    waiting = [*items.get("failed", []), *items.get("pending", [])]
    if waiting:
        why = f"{len(items['done'])} of {items['total']} items are done; next: {waiting[0]}"
        return _do(run, {"key": waiting[0], "item": waiting[0]}, why, ids)
    for step in facts["failed"][:1]:
        words = ("hold", "step", "begin", run["run"], step["key"], "--effect", step["effect"])
        why = f"the step failed and may run again: {step['error']}"
        return action("continue_run", why, *words, step=step["key"], **ids)
    return None


def _do(run: Json, entry: Json, why: str, ids: Json) -> Json:
    key, effect = entry.get("key"), entry.get("effect") or "unsafe"
    more: Json = {k: entry.get(k) for k in ("item", "session") if entry.get(k)}
    if entry.get("command") and key:
        if entry.get("session"):
            words = [
                "hold",
                "exec",
                entry["session"],
                "--step",
                f"{run['run']}:{key}",
                "--effect",
                effect,
                "--",
                entry["command"],
            ]
            return action("continue_run", why, *words, step=key, effect=effect, **more, **ids)
        more["run_command"] = entry["command"]
    if key is None:  # a plan in words: whoever has done that says how far it is
        words = ["hold", "checkpoint", "save", run["run"], "--set", f"current_step={entry['n'] + 1}"]
        return action("continue_run", f"{why}; then say so", *words, **more, **ids)
    begin = ["hold", "step", "begin", run["run"], key, "--effect", effect, "--json"]
    then = ["hold", "step", "end", run["run"], key]
    return action("continue_run", why, *begin, step=key, effect=effect, then=then, **more, **ids)


def _prove(facts: Json, task: Json | None, run: Json, ids: Json) -> Json:
    if task is None:
        return action("end_run", "nothing is left of what it declared", "hold", "work", "end", run["run"], **ids)
    done = ("hold", "task", "done", task["key"])
    failing = [v for v in facts["verification"] if v.get("state") != "passed"]
    if failing:
        first = failing[0]
        why = f"the verification last failed at `{first.get('command')}`: mend that, then verify again"
    elif facts["verification"]:
        why = "its verification passed"
    elif facts["plan"] or run.get("items") or any(run["steps"].values()):
        why = "nothing is left in its plan: the verification decides"
    else:
        why = "nothing was planned or done yet: do what the goal asks, then let the verification decide"
    return action("rerun_verification", why, *done, **ids)
