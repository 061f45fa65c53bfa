"""A real Chromium for tests: its flags, a page that is logged in, and what a person would see of the terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.support.console import link
from tests.support.home import HomeForTests
from tests.support.needs import program

FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE_MS = 60_000.0  # the machine is shared
DESK: Any = {"width": 1280, "height": 800}
PHONE: Any = {"width": 390, "height": 844}

# The screen as the emulator has it: a terminal drawn by the GPU leaves no text in the page.
_TEXT = """() => {
  const term = window.holdfast?.term;
  if (!term) return "";
  const b = term.buffer.active, lines = [];
  for (let y = 0; y < term.rows; y++) lines.push(b.getLine(b.baseY + y)?.translateToString(true) ?? "");
  return lines.join("\\n").trimEnd();
}"""


@contextlib.contextmanager
def chromium(*flags: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=[*FLAGS, *flags])
        yield browser
        browser.close()


def context(browser: Browser, *, phone: bool = False, dark: bool = False, scale: int = 1) -> BrowserContext:
    made = browser.new_context(
        viewport=PHONE if phone else DESK,
        has_touch=phone,
        is_mobile=phone,
        device_scale_factor=scale,
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    made.set_default_timeout(PATIENCE_MS)
    return made


def logged_in(hold: HomeForTests, made: BrowserContext, path: str = "/") -> Page:
    """A page that came in by a link and stands at a path."""
    page = made.new_page()
    page.goto(link(hold)["link"])
    page.get_by_role("navigation", name="Main").wait_for()
    if path != "/":
        page.goto(page.url.split("/", 3)[0] + "//" + page.url.split("/", 3)[2] + path)
        page.locator("main").wait_for()
    return page


def screen(page: Page) -> str:
    return str(page.evaluate(_TEXT))


def lines(page: Page) -> list[str]:
    """Everything that the terminal holds, also what has scrolled away."""
    found = page.evaluate("""() => {
      const b = window.holdfast.term.buffer.active, lines = [];
      for (let y = 0; y < b.length; y++) lines.push(b.getLine(y).translateToString(true));
      return lines;
    }""")
    return [str(line) for line in found if line]


def shows(page: Page, text: str) -> None:
    """Until the terminal shows a text."""
    page.wait_for_function(f"(text) => ({_TEXT})().includes(text)", arg=text, timeout=PATIENCE_MS)


def attached(page: Page) -> None:
    """Until the terminal is live."""
    page.locator('[data-connected="true"]').wait_for(state="attached")
