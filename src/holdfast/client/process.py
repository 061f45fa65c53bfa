"""This process as the machine knows it: its name, its start, its registration as a role; and no core file of it."""

from __future__ import annotations

from ..model import ids
from ..system import here
from ..system.kernel import register, set_name, set_undumpable, start_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["register", "set_name", "set_undumpable", "start_time", "this_process"]

_id = (0, "")  # the number that this process made up, and whose it is: a child that was forked makes its own


def this_process() -> dict[str, Any]:
    """Which process asks for a lease, as the store keeps it: another one of the same name is another worker."""
    global _id
    place, pid, started = here.identity()
    if _id[0] != pid:
        _id = pid, ids.new("")
    return {"id": _id[1], "place": place, "pid": pid, "started": started}
