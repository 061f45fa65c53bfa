"""A great deal of output and many sessions at once: the page stays responsive, and holds a bounded amount of it."""

from __future__ import annotations

import sys

from playwright.sync_api import Browser, Page, expect

from tests.support import browser as chrome
from tests.support import responsive
from tests.support.home import HomeForTests

expect.set_options(timeout=chrome.PATIENCE_MS)
TASK_MS = 200.0  # a page that is busy for longer feels stuck
HEAP_MB = 64.0  # 5,000 lines of a wide terminal are some 15 MB; never the output itself
PROCESS_MB = 500.0  # a browser's process with nothing in it has some 200
_OTHERS = 19
_TICKS = "while :; do echo tick $SECONDS; sleep 1; done"
_FLOOD = """
import os, sys
sys.stdin.readline()
plain = b"".join(b"%06d a line of a build that says a lot about very little, again and again\\r\\n" % n for n in range(700))
colour = b"".join(
    b"\\x1b[90m12:%02d\\x1b[0m \\x1b[1;3%dmmodule_%04d\\x1b[0m \\x1b[38;5;%dmcompiled\\x1b[0m in \\x1b[33m%d ms\\x1b[0m\\r\\n"
    % (n % 60, 1 + n % 6, n, n % 256, n) for n in range(700)
)
for piece in (plain, colour):
    left = 25_000_000
    while left > 0:
        left -= os.write(1, piece)
os.write(1, b"\\r\\nflood over\\r\\n")
sys.stdin.readline()
"""


def test_fifty_megabytes_and_twenty_sessions_leave_the_page_responsive(
    hold: HomeForTests, url: str, desk: Page, chromium: Browser
) -> None:
    for n in range(_OTHERS):
        hold.run("bash", "-c", _TICKS, name=f"other-{n}")
    flood = hold.run(sys.executable, "-c", _FLOOD, name="flood")
    desk.add_init_script(responsive.OBSERVE)
    with responsive.watched(chromium) as watch:
        desk.goto(f"{url}/sessions/{flood.id}")
        chrome.attached(desk)
        flood.send("", enter=True)
        chrome.shows(desk, "flood over")
        longest, peak = watch.longest_ms(desk, TASK_MS), watch.most_mb()
    heap = responsive.heap_mb(desk)
    assert flood.status().output.end > 50_000_000
    assert longest <= TASK_MS
    assert heap < HEAP_MB
    assert peak < PROCESS_MB
    assert desk.evaluate("window.holdfast.term.buffer.active.length") <= 5100
    fresh = desk.context.new_page()
    fresh.goto(f"{url}/sessions/{flood.id}")
    chrome.shows(fresh, "flood over")
    assert chrome.screen(desk) == chrome.screen(fresh)
    desk.goto(f"{url}/sessions")
    expect(desk.locator("[data-session]")).to_have_count(_OTHERS + 1)
