"""Several windows on one session in which nobody types: all of them rest."""

from __future__ import annotations

import os
import select
from pathlib import Path

from tests.support.attached import AttachedTerminal
from tests.support.home import HomeForTests, until

_SIZED_MAX = 4  # two windows, and a second size for each that was made before it had its own
_QUIET_S = 0.3  # windows that answer each other do so thousands of times in it


def switches(pids: list[int]) -> dict[int, int]:
    """How often each was put to sleep and woken, by the kernel's count."""
    return {
        pid: sum(
            int(x.split()[1]) for x in Path(f"/proc/{pid}/status").read_text().splitlines() if "ctxt_switches" in x
        )
        for pid in pids
    }


def pumped(*terminals: AttachedTerminal) -> bool:
    """Their output is read, as a terminal does. True, to stand before a condition."""
    for terminal in terminals:
        terminal.pump()
    return True


def at_rest(pids: list[int], terminals: list[AttachedTerminal]) -> bool:
    pumped(*terminals)
    before = switches(pids)
    select.select([], [], [], _QUIET_S)
    return switches(pids) == before


def test_two_windows_of_different_size_leave_everybody_idle(hold: HomeForTests) -> None:
    s = hold.run("cat", name="cat")
    small = AttachedTerminal(hold, "attach", "cat", size=(70, 20))
    large = AttachedTerminal(hold, "attach", "cat", size=(100, 30))
    try:
        until(lambda: pumped(small, large) and len(s.status().attached) == 2, timeout=30)
        everybody = [hold.daemon_pid(), hold.keeper_pid(s), small.pid, large.pid]
        until(lambda: at_rest(everybody, [small, large]), timeout=30)
        # Each window sized the terminal once, when it came. What they answer each other with would count on.
        assert s.status().controls.epoch <= _SIZED_MAX
    finally:
        small.close()
        large.close()


def test_the_window_that_types_gets_its_size(hold: HomeForTests) -> None:
    s = hold.run("cat", name="cat")
    first = AttachedTerminal(hold, "attach", "cat", size=(70, 20))
    second = None
    try:
        until(lambda: pumped(first) and s.status().pty.cols == 70, timeout=60)  # type: ignore[union-attr]
        second = AttachedTerminal(hold, "attach", "cat", size=(100, 30))
        until(lambda: pumped(first, second) and s.status().pty.cols == 100, timeout=60)  # type: ignore[union-attr]
        first.type(b"x")
        until(lambda: pumped(first, second) and s.status().pty.cols == 70, timeout=60)  # type: ignore[union-attr]
    finally:
        first.close()
        if second is not None:
            second.close()
    assert os.path.exists(f"/proc/{s.status().pid}")
