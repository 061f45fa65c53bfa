"""This process as the machine knows it: its name, its start, its registration as a role; whose home it may use."""

from __future__ import annotations

from ..system.kernel import register, set_name, set_undumpable, start_time
from ..system.trust import check_home

__all__ = ["check_home", "register", "set_name", "set_undumpable", "start_time"]
