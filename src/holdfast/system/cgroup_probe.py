"""Which limits a keeper started from here could enforce: tried, with the code that keepers use."""

from __future__ import annotations

import os

from ..model.doctor_findings import Finding, ok, warn
from . import cgroup

LIMITS = ("pids", "memory")
_PIDS, _MEMORY_BYTES = 1000, 1 << 30  # any value will do: no process enters the leaves


def enforceable() -> set[str]:
    """The limits among `LIMITS` for which a cgroup leaf could be made from this process's own group."""
    found = set()
    for name, pids, memory in (("pids", _PIDS, 0), ("memory", 0, _MEMORY_BYTES)):
        leaves = cgroup.make_leaf(f"holdfast-probe-{os.getpid()}", pids, memory)
        cgroup.remove(leaves)
        if leaves:
            found.add(name)
    return found


def version() -> str:
    """Which cgroups this machine has, in words."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        return "v2"
    if os.path.isdir("/sys/fs/cgroup/pids") or os.path.isdir("/sys/fs/cgroup/memory"):
        return "v1"
    return "none"


def finding() -> Finding:
    return judge(enforceable(), version())


def judge(enforced: set[str], cgroups: str) -> Finding:
    missing = [name for name in LIMITS if name not in enforced]
    if missing:
        return warn(
            "limits",
            f"cgroups {cgroups}: this machine cannot enforce --limit {' or '.join(missing)} from here",
            "start the host where cgroups are delegated to it; programs run all the same",
        )
    return ok("limits", f"cgroups {cgroups}: --limit pids and memory can be enforced")
