"""Operators for tests: enrol one, act as one, and read what the journal says."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests

Json = dict[str, Any]
INSIDE = f"{sys.executable} -m holdfast.cli.main"  # `hold` for a shell inside a session


def enrol(hold: HomeForTests, name: str, kind: str = "agent", **options: Any) -> Json:
    """A new operator; `verbs`, `sessions`, `ttl` as in the SDK."""
    return hold.host.add_operator(name, kind, **options)


def acting_as(hold: HomeForTests, name: str) -> Host:
    """The SDK with that operator's key."""
    return Host(str(hold.path), operator=name)


def journal(hold: HomeForTests, *kinds: str) -> list[Json]:
    """Every entry so far, or those of some kinds."""
    entries: list[Json] = []
    before = None
    while True:
        page = hold.host.timeline(before=before)
        entries = page["entries"] + entries
        before = page["next"]
        if before is None:
            return [e for e in entries if not kinds or e["kind"] in kinds]


def refusals(hold: HomeForTests) -> list[Json]:
    return journal(hold, "refuse")
