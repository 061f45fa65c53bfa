"""A worker's events: lines on stderr for people, or JSON documents on stdout for programs."""

from __future__ import annotations

import json
import sys
from typing import Any

_WORDS = {
    "ready": "{worker} looks for work: {jobs}",
    "begun": "{job} {run}: begun",
    "taken_over": "{job} {run}: continued from {before} with epoch {epoch}",
    "done": "{job} {run}: done",
    "failed": "{job} {run}: failed: {message}",
    "parked": "{job} {run}: waits for step {step!r} to be settled: {message}",
    "left": "{job} {run}: released",
    "waiting": "{parked} of its runs wait for a person: hold work ls --state parked",
    "stopped": "{worker} has stopped",
}


def put(who: str, event: str, facts: dict[str, Any], line: str | None) -> None:
    """Print the line for people; without one, the facts as a JSON document."""
    if line is None:
        sys.stdout.write(json.dumps({"event": event, **{k: v for k, v in facts.items() if v is not None}}) + "\n")
        sys.stdout.flush()
        return
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    print(f"{who}: {shown}", file=sys.stderr, flush=True)  # noqa: T201


class Events:
    """`tell(event, **facts)`."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def tell(self, event: str, **facts: Any) -> None:
        put("hold worker", event, facts, None if self._as_json else _words(event, facts))


def _words(event: str, facts: dict[str, Any]) -> str:
    shown = {k: ", ".join(v) if isinstance(v, list) else v for k, v in facts.items()}
    return _WORDS[event].format_map(shown) + (" (standby)" if facts.get("standby") else "")
