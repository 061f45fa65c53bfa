"""Times as people and programs exchange them: RFC 3339 in UTC. The clock itself is always passed in."""

from __future__ import annotations

import datetime


def rfc3339(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
