"""A check that the machine does not allow is a finding too, never a traceback."""

from __future__ import annotations

from collections.abc import Callable

from ....model.doctor_findings import Finding, warn


def guarded(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except OSError as e:
        return warn(name, f"it could not be looked at: {e.strerror or e}", "nothing, unless something else fails too")
