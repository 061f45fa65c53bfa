"""One finding of `hold doctor`: what was looked at, how it stands, what was seen, and what to do about it."""

from __future__ import annotations

OK, WARN, FAIL = "ok", "warn", "fail"

Finding = dict[str, "str | None"]  # name · status · seen · advice


def ok(name: str, seen: str) -> Finding:
    return {"name": name, "status": OK, "seen": seen, "advice": None}


def warn(name: str, seen: str, advice: str) -> Finding:
    """Something works less well, or will not work for long."""
    return {"name": name, "status": WARN, "seen": seen, "advice": advice}


def fail(name: str, seen: str, advice: str) -> Finding:
    """Something does not work, or a promise is broken."""
    return {"name": name, "status": FAIL, "seen": seen, "advice": advice}


def failed(findings: list[Finding]) -> bool:
    return any(f["status"] == FAIL for f in findings)


def some(items: list[str], shown: int = 5) -> str:
    """A few of many, with how many were left out: a line must stay a line."""
    more = len(items) - shown
    return ", ".join(items[:shown]) + (f" and {more} more" if more > 0 else "")
