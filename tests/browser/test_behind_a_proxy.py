"""The console in a real browser whose way leads through a real reverse proxy with TLS."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.support import browser as chrome
from tests.support.home import HomeForTests, until
from tests.support.nginx import NAME, Nginx
from tests.support.web import web_pid

expect.set_options(timeout=chrome.PATIENCE_MS)


def test_a_browser_logs_in_types_and_comes_back_through_a_proxy(hold: HomeForTests, url: str, tmp_path: Path) -> None:
    nginx = Nginx(tmp_path / "nginx", urlsplit(url).netloc)
    try:
        done = hold("up", "--web", url.rpartition(":")[2], "--web-url", nginx.url, "--json")
        session = hold.run("cat", name="kitten")
        with chrome.chromium(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as browser:
            page = browser.new_context(ignore_https_errors=True, viewport=chrome.DESK).new_page()
            page.set_default_timeout(chrome.PATIENCE_MS)
            page.goto(done.json["host"]["web"]["link"])
            page.get_by_role("navigation", name="Main").wait_for()
            assert [c["secure"] for c in page.context.cookies()] == [True]
            page.goto(f"{nginx.url}/sessions/{session.id}")
            chrome.attached(page)
            page.keyboard.type("through the proxy\n")
            chrome.shows(page, "through the proxy\nthrough the proxy")
            gone = web_pid(hold) or 0
            os.kill(gone, signal.SIGKILL)  # the proxy has nobody behind it for a moment
            until(lambda: web_pid(hold) not in (None, gone), 60)
            session.send("while it was away", enter=True)
            chrome.shows(page, "while it was away\nwhile it was away")
            chrome.attached(page)
            page.get_by_label("Terminal input").focus()
            page.keyboard.type("and back\n")
            chrome.shows(page, "and back\nand back")
    finally:
        nginx.close()
