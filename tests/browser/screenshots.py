"""Pictures of every screen, in both sizes and themes: `python -m tests.browser.screenshots FOLDER [SCREEN…]`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.showcase import fill
from tests.support.web import serve


def screens(ids: dict[str, str]) -> dict[str, str]:
    """Every screen behind the login, with its address."""
    return {
        "inbox": "/inbox",
        "sessions": "/sessions",
        "session": f"/sessions/{ids['shell']}",
        "watching": f"/sessions/{ids['agent']}",
        "replay": f"/sessions/{ids['agent']}/replay",
        "work": "/work",
        "task": "/work/shop/tasks/1.1",
        "run": f"/runs/{ids['run']}",
        "report": "/report",
        "access": "/access",
        "pairing": "/access",
        "grant": "/access",
        "files": f"/sessions/{ids['agent']}",
    }


def settled(page: Page, name: str) -> None:
    """Until a screen shows what it is for."""
    _UNTIL[name](page)


def _terminal(page: Page) -> None:
    chrome.attached(page)
    chrome.shows(page, "passed")


def _replay(page: Page) -> None:
    page.get_by_role("button", name="Play").and_(page.locator(":enabled")).wait_for()
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Next").click()
    chrome.shows(page, "$")


def _task(page: Page) -> None:
    page.get_by_text("To continue from here").wait_for()
    page.get_by_text("Looking…").wait_for(state="hidden")


def _run(page: Page) -> None:
    page.get_by_role("tab", name="Checkpoints").click()
    page.get_by_text("Nothing changed").or_(page.locator(".change").first).wait_for()


def _access(page: Page) -> None:
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("every hash and signature").wait_for()


def _pairing(page: Page) -> None:
    page.get_by_role("button", name="Pair a device…").click()
    page.get_by_role("button", name="Make a link").click()
    page.get_by_role("img", name="QR code").wait_for()


def _grant(page: Page) -> None:
    page.get_by_role("button", name="Grant nightly more").click()
    page.get_by_role("dialog").wait_for()


def _files(page: Page) -> None:
    chrome.attached(page)
    details = page.get_by_role("button", name="Details")
    if details.is_visible():  # on a phone
        details.click()
    page.get_by_role("tab", name="Files").click()
    page.get_by_text("by any process").wait_for()


_UNTIL: dict[str, Callable[[Page], None]] = {
    "session": _terminal,
    "watching": _terminal,
    "replay": _replay,
    "task": _task,
    "run": _run,
    "access": _access,
    "pairing": _pairing,
    "grant": _grant,
    "files": _files,
    "inbox": lambda page: page.get_by_role("article").nth(2).wait_for(),
    "sessions": lambda page: page.get_by_role("link", name="fix-login").wait_for(),
    "work": lambda page: page.get_by_text("Log in by mail").wait_for(),
    "report": lambda page: page.get_by_role("img").wait_for(),
}


def _pictures(hold: HomeForTests, url: str, ids: dict[str, str], out: Path, wanted: list[str], phone: bool) -> None:
    scale = 2 if phone else 1  # as a phone's screen has it; the terminal's canvas asks the browser itself, not the page
    with chrome.chromium(f"--force-device-scale-factor={scale}") as browser:
        for dark in (False, True):
            made = chrome.context(browser, phone=phone, dark=dark, scale=scale)
            tail = f"{'phone' if phone else 'desk'}-{'dark' if dark else 'light'}.png"
            page = made.new_page()
            page.goto(url)
            page.get_by_role("button", name="Log in").wait_for()
            page.screenshot(path=out / f"login-{tail}")
            page = chrome.logged_in(hold, made)
            for name, path in screens(ids).items():
                if wanted and name not in wanted:
                    continue
                page.goto(url + path)
                settled(page, name)
                page.screenshot(path=out / f"{name}-{tail}")
            made.close()


def main(out: Path, wanted: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        hold = HomeForTests(Path(folder, "home"))
        try:
            url = serve(hold)
            ids = fill(hold, Path(folder, "shop"))
            for phone in (False, True):
                _pictures(hold, url, ids, out, wanted, phone)
        finally:
            hold.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
