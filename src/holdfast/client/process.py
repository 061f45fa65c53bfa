"""This process as the machine knows it: its name, its start, its registration as a role; whose home it may use."""

from __future__ import annotations

import os

from ..model import ids
from ..system import own_process
from ..system.kernel import register, set_name, set_undumpable, start_time
from ..system.owner_trust import check_home
from ..system.process_tree import read_stat
from ..system.programs import VERIFIER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["VERIFIER", "acts_for", "check_home", "register", "set_name", "set_undumpable", "start_time", "this_process"]

_id = (0, "")  # the number that this process made up, and whose it is: a child that was forked makes its own
# What stands between an agent and the commands it runs, and does not outlive them.
_PASSING = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "env", "sudo", "timeout", "nohup", "xargs", "uv"})
_PARENTS_MAX = 32  # a command that is further below its agent acts for itself


def this_process() -> dict[str, Any]:
    """Which process asks for a lease, as the store keeps it: another one of the same name is another worker."""
    global _id
    place, pid, started = own_process.identity()
    if _id[0] != pid:
        _id = pid, ids.new("")
    return {"id": _id[1], "place": place, "pid": pid, "started": started}


def acts_for() -> int | None:
    """Which parent of a passing command it acts for: 1 for the next, and so on; the nearest that lives on. None where
    there is none: then time decides."""
    line = [read_stat(os.getppid())]
    while (above := line[-1]) is not None and len(line) < _PARENTS_MAX and above.comm in _PASSING and above.ppid > 1:
        line.append(read_stat(above.ppid))
    if above is None or above.pid <= 1:
        return None
    if above.comm.startswith("hold-"):  # a session: its own shell lives on
        return len(line) - 1 or None
    return None if above.comm in _PASSING else len(line)
