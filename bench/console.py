"""How soon a terminal in a browser shows what is printed again, after its server was killed or its network was gone."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Callable

from playwright.sync_api import Page, sync_playwright

from .ours import HOLD, Ours
from .result import Result, Target, spread

KEY = "console"
_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run")
_PATIENCE_MS = 60_000.0
_STEADY_S = 11.0  # a server that served for less than 10 s is started again with a pause: each kill is a first one
_WITHIN_MS = 3000.0  # what somebody waits for without a thought of reloading
_SHOWS = """(text) => {
  const term = window.holdfast?.term, buffer = term?.buffer.active;
  const rows = Array.from({ length: term?.rows ?? 0 }, (_, y) => buffer.getLine(buffer.baseY + y));
  return rows.some((row) => row?.translateToString(true).includes(text));
}"""


def measure(quick: bool) -> list[Result]:
    rounds = 2 if quick else 5
    with Ours() as ours, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=list(_FLAGS))
        try:
            page = browser.new_page()
            page.set_default_timeout(_PATIENCE_MS)
            session = ours.run("cat")
            page.goto(_link(ours))
            page.goto(page.url.rpartition("/")[0] + f"/sessions/{session.id}")
            page.locator('[data-connected="true"]').wait_for(state="attached")

            def say(word: str) -> None:
                session.send(word, enter=True)

            killed = [_back(page, say, f"killed-{n}", lambda: _kill(ours)) for n in range(rounds)]
            gone = [_back(page, say, f"gone-{n}", lambda: _offline(page)) for n in range(rounds)]
        finally:
            browser.close()
    return [
        _row("killed", "a page after a kill of its web process", killed, "from the kill: its restart is in it"),
        _row("offline", "a page after its network came back", gone, "from the network's return"),
    ]


def _link(ours: Ours) -> str:
    subprocess.run([HOLD, "up", "--web", "0"], env=ours.env, check=True, capture_output=True)
    done = subprocess.run([HOLD, "web", "link", "--json"], env=ours.env, check=True, capture_output=True)
    return str(json.loads(done.stdout)["link"])


def _back(page: Page, say: Callable[[str], None], word: str, lose: Callable[[], float]) -> float:
    """From what `lose` returns (the moment that counts) until the page shows a word that was printed meanwhile."""
    began = lose()
    say(word)
    page.wait_for_function(_SHOWS, arg=word, polling=20)
    return (time.monotonic() - began) * 1e3


def _kill(ours: Ours) -> float:
    time.sleep(_STEADY_S)
    os.kill(int(ours.host.call("ping")["host"]["web"]["pid"]), signal.SIGKILL)
    return time.monotonic()


def _offline(page: Page) -> float:
    page.context.set_offline(True)
    page.get_by_text("Connecting again").wait_for()
    page.context.set_offline(False)
    return time.monotonic()


def _row(kind: str, name: str, times: list[float], note: str) -> Result:
    median = statistics.median(times)
    return Result(
        key=f"{KEY}-{kind}",
        name=name,
        unit="ms",
        ours=median,
        targets=(Target("median", median, _WITHIN_MS, "lower", "ms"),),
        notes=(note, spread(times)),
    )
