"""Which limits a keeper started from here could enforce: tried with the keeper's own code, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from ..model.findings import Finding, ok, warn

LIMITS = ("pids", "memory")
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_ANSWER_S = 10.0  # an interpreter's start on a loaded machine, not a wait for anything
# The keeper is a role: it is run, never imported. Values are generous, and no process enters these leaves.
_PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from . import cgroup
for name, pids, memory in (("pids", 1000, 0), ("memory", 0, 1 << 30)):
    leaves = cgroup.make_leaf(f"holdfast-probe-{os.getpid()}", pids, memory)
    cgroup.remove(leaves)
    if leaves:
        print(name)
"""


def enforceable() -> set[str]:
    """The limits among `LIMITS` for which a cgroup leaf could be made from this process's own group."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWER_S, check=True, cwd="/",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return set()
    return set(done.stdout.decode("ascii", "replace").split())


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
            "limits", f"cgroups {cgroups}: this machine cannot enforce --limit {' or '.join(missing)} from here",
            "start the host where cgroups are delegated to it; programs run all the same",
        )  # fmt: skip
    return ok("limits", f"cgroups {cgroups}: --limit pids and memory can be enforced")
