"""What the kernel says of a process: memory, processor time, and how often it was woken."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from .ours import until


def pss_kb(pid: int) -> int:
    """Proportional set size: private memory, plus this process's share of what it shares."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise RuntimeError(f"no Pss for {pid}")


def cpu_ticks(pid: int) -> int:
    """User and system time so far, in clock ticks (10 ms)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def switches(pids: Iterable[int]) -> int:
    """Context switches so far of all threads: a process that is woken switches, one that sleeps does not."""
    total = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            for line in Path(f"/proc/{pid}/task/{thread}/status").read_text().splitlines():
                if "ctxt_switches" in line:
                    total += int(line.split()[1])
    return total


def settle(pids: Sequence[int], quiet_s: float) -> None:
    """Until none of them has run for `quiet_s`: what was just started or printed has been dealt with."""

    def quiet() -> bool:
        before = switches(pids)
        time.sleep(quiet_s)
        return switches(pids) == before

    until(quiet, timeout=60)
