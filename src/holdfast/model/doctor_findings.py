"""A finding of `hold doctor`: the check, its status, what was observed, and what to do."""

from __future__ import annotations

OK, WARN, FAIL = "ok", "warn", "fail"

Finding = dict[str, "str | None"]  # name · status · seen · advice


def ok(name: str, seen: str) -> Finding:
    return {"name": name, "status": OK, "seen": seen, "advice": None}


def warn(name: str, seen: str, advice: str) -> Finding:
    """A warning: something works less well, or will stop working."""
    return {"name": name, "status": WARN, "seen": seen, "advice": advice}


def fail(name: str, seen: str, advice: str) -> Finding:
    """A failure: something does not work."""
    return {"name": name, "status": FAIL, "seen": seen, "advice": advice}


def failed(findings: list[Finding]) -> bool:
    return any(f["status"] == FAIL for f in findings)


def some(items: list[str], shown: int = 5) -> str:
    """The first few items and the number of the others, as one line."""
    more = len(items) - shown
    return ", ".join(items[:shown]) + (f" and {more} more" if more > 0 else "")
