"""An attempt's course: what the runner does next, from what it did last and what came of it. One table. Pure.

Every action is repeatable: what it did is in the record. A runner that takes over begins at the beginning, finds each
finished action's result, and comes to the one that was under way.
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Json = dict[str, Any]

ACTIONS = (
    "prepare",
    "start",
    "wait",
    "stop",
    "clear",
    "compare",
    "verify",
    "accept",
    "reject",
    "block",
    "leave",
    "abandon",
    "drop",
    "end",
)

# (action, what came of it) -> next action. `judge` is decided by the facts, below.
COURSE: dict[tuple[str, str], str] = {
    ("begin", "taken"): "prepare",
    ("prepare", "prepared"): "start",
    ("prepare", "missing"): "reject",  # no such program: the next attempt has the next backend
    ("start", "started"): "wait",
    ("start", "refused"): "reject",
    ("start", "elsewhere"): "block",  # begun where we cannot look: by another host, or out of our sight
    ("wait", "exited"): "clear",  # what the program left running
    ("wait", "time_up"): "stop",
    ("stop", "stopped"): "compare",
    ("clear", "cleared"): "compare",
    ("compare", "compared"): "judge",
    ("verify", "verified"): "judge",
    ("accept", "accepted"): "end",
    ("accept", "outdated"): "verify",  # the contract was changed meanwhile
    ("accept", "in_doubt"): "block",  # a step that somebody else began in its run: a person has to look
    ("reject", "rejected"): "end",
    ("block", "blocked"): "end",
    ("leave", "left"): "end",
    ("abandon", "abandoned"): "end",
    ("drop", "dropped"): "end",
}
# Whatever was under way. Sessions outlive their runner; only a cancelled task's are ended.
ALWAYS = {"leaving": "leave", "cancelled": "abandon", "fenced": "drop"}


class Facts(NamedTuple):
    """What is known so far."""

    ok: bool = False  # the backend ended with exit code 0
    changed: int = 0  # files created, changed or deleted
    checks: int = 0  # verification commands of the contract
    passed: bool | None = None  # None: not verified yet


def next_action(action: str, event: str, facts: Facts) -> str:
    """What to do after `action` ended in `event`."""
    if event in ALWAYS:
        return ALWAYS[event]
    wanted = COURSE[action, event]
    return _judge(facts) if wanted == "judge" else wanted


def _judge(facts: Facts) -> str:
    """What was changed is verified, however the backend ended; a backend that gave up with nothing done has failed."""
    if facts.passed is not None:
        return "accept" if facts.passed else "reject"
    if not facts.ok and not facts.changed:
        return "reject"
    if facts.checks:
        return "verify"
    return "accept" if facts.ok else "reject"


def choose(order: Sequence[str], tried: Sequence[tuple[str, str | None]], escalate_after: int) -> str | None:
    """The backend of the next attempt: the first that was tried less often than `escalate_after`, else the least tried.

    `tried` is (backend, failure type) of the attempts so far. One whose program is missing is not tried again while
    there is another.
    """
    usable = [b for b in order if (b, "missing_tool") not in tried] or list(order)
    counts = {b: sum(b == one for one, _ in tried) for b in usable}
    fresh = [b for b in usable if counts[b] < escalate_after]
    return fresh[0] if fresh else min(usable, key=lambda b: counts[b], default=None)


def counted(attempts: Sequence[Json], events: Sequence[Json], n: int) -> list[Json]:
    """The attempts before the n-th that still count: those since somebody last gave the task a fresh start."""
    fresh = max((str(e["at"]) for e in events if e["event"] in ("unblock", "retry")), default="")
    return [a for a in attempts if a["n"] < n and str(a["begun_at"]) >= fresh]


def request_of(run: str, *parts: object) -> str:
    """The id of the request that starts an attempt's session, or with `parts` one that belongs to it. A run has one
    attempt, so whoever asks again finds what is there."""
    return "-".join(("req_" + run, *map(str, parts)))


def session_name(project: str, id: str, n: int) -> str:
    """What people see in `hold ls`; unique to the attempt, and within what a session's name may be."""
    from ...model.limits import NAME_MAX

    end = f"-{n}"
    return f"{project}.{id}"[: NAME_MAX - len(end)].rstrip("._-+") + end
