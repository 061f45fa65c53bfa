"""What the kernel says of a process: memory, processor time, and how often it was woken."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


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
