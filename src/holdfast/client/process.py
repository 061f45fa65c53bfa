"""This process as the machine knows it: its name, its start, its registration as a role; and no core file of it."""

from __future__ import annotations

from ..system.kernel import register, set_name, set_undumpable, start_time

__all__ = ["register", "set_name", "set_undumpable", "start_time"]
