"""The order of an attempt's actions: one table from an action and its outcome to the next action. Pure.

Every action is repeatable: its result is recorded. A runner that takes over begins at the first action, gets the
recorded results, and continues at the one that was running.
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

# (action, outcome) -> next action. `judge` is decided by the facts, below.
COURSE: dict[tuple[str, str], str] = {
    ("begin", "taken"): "prepare",
    ("prepare", "prepared"): "start",
    ("prepare", "missing"): "reject",  # no such program: the next attempt has the next backend
    ("start", "started"): "wait",
    ("start", "refused"): "reject",
    ("start", "elsewhere"): "block",  # started on another host, or not visible to this operator
    ("wait", "exited"): "clear",  # what the program left running
    ("wait", "time_up"): "stop",
    ("stop", "stopped"): "compare",
    ("clear", "cleared"): "compare",
    ("compare", "compared"): "judge",
    ("verify", "verified"): "judge",
    ("accept", "accepted"): "end",
    ("accept", "outdated"): "verify",  # the contract was changed during the verification
    ("accept", "in_doubt"): "block",  # a step that another worker began in its run: a person must check
    ("reject", "rejected"): "end",
    ("block", "blocked"): "end",
    ("leave", "left"): "end",
    ("abandon", "abandoned"): "end",
    ("drop", "dropped"): "end",
}
# After any action. Sessions outlive their runner; only those of a cancelled task are ended.
ALWAYS = {"leaving": "leave", "cancelled": "abandon", "fenced": "drop"}


class Facts(NamedTuple):
    """The facts known so far."""

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
    """Changes are verified, however the backend ended; a backend that failed without changes has failed."""
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
    """The attempts before the n-th that still count: those since the task was last reset."""
    fresh = max((str(e["at"]) for e in events if e["event"] in ("unblock", "retry")), default="")
    return [a for a in attempts if a["n"] < n and str(a["begun_at"]) >= fresh]


def request_of(run: str, *parts: object) -> str:
    """The request id that starts an attempt's session, or with `parts` a derived one. A run has one attempt, so a
    repeated request finds the existing session."""
    return "-".join(("req_" + run, *map(str, parts)))


def session_name(project: str, id: str, n: int) -> str:
    """The session's name in `hold ls`; unique to the attempt, and a valid session name."""
    from ...model.limits import NAME_MAX

    end = f"-{n}"
    return f"{project}.{id}"[: NAME_MAX - len(end)].rstrip("._-+") + end
