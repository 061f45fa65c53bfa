"""Makes a host connection for commands that end before the hold they take: an agent's hold is its caller's."""

from __future__ import annotations

import os

from ...client._sync.host import Host


def passing_host() -> Host:
    """Only an agent's hold ends with a process; a caller without an operator and outside a session is a person."""
    host = Host()
    if os.environ.get("HOLDFAST_OPERATOR") or os.environ.get("HOLDFAST_SESSION"):
        from ...client.process import acts_for

        host.ancestor = acts_for()
    return host
