"""Parses durations and times as people write them. The clock is an argument."""

from __future__ import annotations

import re

from .errors import invalid

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}|[0-9]{8}(?:T|\Z)")
_UNIT_S = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration_s(text: str) -> float:
    """`90`, `30s`, `5m`, `2h`, `1d` or a sum of them (`1h30m`), in seconds."""
    total, at = 0.0, 0
    while at < len(text) and (part := _PART.match(text, at)):
        total += float(part[1]) * _UNIT_S[part[2]]
        at = part.end()
    if not text or at != len(text):
        raise invalid(f"{text[:40]!r} is not a duration", "write 90s, 30m, 2h or 1d")
    return total


def moment_s(text: str, now: float) -> float:
    """`10m` (ago) or an RFC 3339 time, as seconds since 1970. Without a zone it is this machine's time."""
    if _PART.match(text) and not _DATE.match(text):
        return now - duration_s(text)
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise invalid(f"{text[:40]!r} is not a time", "write 10m (ago), or 2026-01-31T12:00:00Z") from None
