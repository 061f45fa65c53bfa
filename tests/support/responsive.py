"""How long a page was busy at a time, and how much memory its process has, while something goes on.

A task that the machine put aside for others is long by the clock and short by the processor. The page can only be
blamed for the second, so a task that is too long by the clock is judged by the processor time that its process's main
thread had meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Browser, Page

_EVERY_S = 0.02  # how exactly a task's processor time is known: the looks before and after it enclose it

OBSERVE = """
window.longTasks = [];
new PerformanceObserver((list) => {
  for (const e of list.getEntries()) window.longTasks.push([performance.timeOrigin + e.startTime, e.duration]);
}).observe({ type: "longtask", buffered: true });
"""


class Watched:
    """Looks at the main threads of a browser's pages until it is told to stop."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._looks: dict[int, list[tuple[float, float]]] = {pid: [] for pid in pids}  # (time, processor time), in ms
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.wait(_EVERY_S):
            for pid in self._pids:
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/schedstat", encoding="ascii") as f:
                    before = time.time()
                    spent = int(f.read().split()[0]) / 1e6
                    self._looks[pid].append(((before + time.time()) * 500, spent))

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(30)

    def processor_ms(self, start: float, duration: float) -> float:
        """At most so much of a processor had any page's main thread during a task."""
        return max((_spent(looks, start, start + duration) for looks in self._looks.values()), default=0.0)

    def longest_ms(self, page: Page, limit_ms: float) -> float:
        """The longest task of a page: by the clock, and by the processor where that is over the limit."""
        tasks: list[list[float]] = page.evaluate("window.longTasks")
        return max((d if d <= limit_ms else min(d, self.processor_ms(s, d)) for s, d in tasks), default=0.0)

    def most_mb(self) -> float:
        """The most memory that one of the processes had."""
        return max(peak_mb(pid) for pid in self._pids)


def _spent(looks: list[tuple[float, float]], start: float, end: float) -> float:
    before = [spent for at, spent in looks if at <= start]
    after = [spent for at, spent in looks if at >= end]
    first = before[-1] if before else looks[0][1]
    return (after[0] if after else looks[-1][1]) - first


def peak_mb(pid: int) -> float:
    """The most memory that a process ever had."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith("VmHWM:"))
    return 0.0


def pages(browser: Browser) -> list[int]:
    """The processes that run this browser's pages."""
    line = browser.new_browser_cdp_session()
    found: dict[str, Any] = line.send("SystemInfo.getProcessInfo")
    line.detach()
    pids = [int(p["id"]) for p in found["processInfo"] if p["type"] == "renderer"]
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def heap_mb(page: Page) -> float:
    """What the page's scripts hold on to."""
    line = page.context.new_cdp_session(page)
    line.send("HeapProfiler.collectGarbage")
    used: dict[str, Any] = line.send("Runtime.getHeapUsage")
    line.detach()
    return float(used["usedSize"] + used.get("backingStorageSize", 0)) / 1e6


@contextlib.contextmanager
def watched(browser: Browser) -> Iterator[Watched]:
    with Watched(pages(browser)) as made:
        yield made
