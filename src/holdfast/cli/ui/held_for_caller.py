"""A host for a command that is over before what it began: what an agent holds by it is held for its caller."""

from __future__ import annotations

import os

from ...client._sync.host import Host


def passing_host() -> Host:
    """Only an agent's hold ends with a process; whoever names no operator and stands in no session is a person."""
    host = Host()
    if os.environ.get("HOLDFAST_OPERATOR") or os.environ.get("HOLDFAST_SESSION"):
        from ...client.process import acts_for

        host.ancestor = acts_for()
    return host
