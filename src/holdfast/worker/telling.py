"""A runner's events: lines on stderr for people, or JSON documents on stdout for programs."""

from __future__ import annotations

from typing import Any

from .event_lines import put

_WORDS = {
    "ready": "{runner} looks for tasks of {project}",
    "taken": "{task}: attempt {n} by {backend}",
    "taken_over": "{task}: attempt {n} continued from a stopped runner",
    "started": "{task}: runs as {session}; watch it: hold attach -r {session}",
    "adopted": "{task}: still runs as {session}",
    "asks": "{task}: {session} asks: {text} (hold answer {ask})",
    "exited": "{task}: {backend} ended: {how}",
    "time_up": "{task}: timed out after {timeout_s:g} s",
    "ended_leftovers": "{task}: ended {left} processes that {backend} left running",
    "changes": "{task}: {created} created, {changed} changed, {deleted} deleted",
    "verifying": "{task}: verifying: {commands}",
    "not_ours": "{task}: {session}, started by {by}, is not a valid verification: it was started differently, or before"
    " the attempt's end; verifying again",
    "verified": "{task}: verification {result}",
    "done": "{task}: done",
    "failed": "{task}: failed: {failure_type}: {failure_detail} ({convergence}); it is tried again",
    "blocked": "{task}: blocked: {failure_type}: {failure_detail}; {why} (hold task show {task})",
    "left": "{task}: released; its session keeps running",
    "cancelled": "{task}: cancelled; its processes were ended",
    "dropped": "{task}: another runner took it: {message}",
    "error": "{task}: {message}",
    "stopped": "{runner} has stopped",
    "held_back": "{task}: held back: its scope {scope} overlaps {overlaps} of {beside}, which is under way"
    " (hold policy set --set 'overlap=\"allow\"' runs them in parallel)",
    "never_ready": "{task}: waits for cancelled {waits_for} and can never begin"
    " (hold task retry {waits_for}, or hold task edit {task} --no-after)",
    "idle": "nothing is left to do: {counts}",
}


class Telling:
    """`tell(event, **facts)`."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def __call__(self, event: str, **facts: Any) -> None:
        put("hold work", event, facts, None if self._as_json else _words(event, facts))


def _words(event: str, facts: dict[str, Any]) -> str:
    return _WORDS[event].format_map(facts) + (f" (pid {facts['pid']})" if facts.get("pid") else "")
