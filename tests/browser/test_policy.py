"""The page's content security policy: nothing of the page needs an exception, and nothing written into it has effect."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.screenshots import screens, settled
from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.showcase import fill

expect.set_options(timeout=chrome.PATIENCE_MS)
_OBSERVE = """
window.refused = [];
document.addEventListener("securitypolicyviolation", (e) => window.refused.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}`));
"""
_COLOURED = r"printf '\033[38;2;255;0;0mred\033[0m \033[48;5;21mblue\033[0m \033[1;32mgreen\033[0m done\n'; sleep 600"


def test_the_policy_has_no_exception(desk: Page, url: str) -> None:
    policy = desk.request.get(url + "/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy


@pytest.mark.timeout(300)  # ten screens, on a shared machine
def test_no_screen_asks_for_what_the_policy_refuses(
    hold: HomeForTests, url: str, chromium: Browser, tmp_path: Path
) -> None:
    ids = fill(hold, tmp_path / "shop")
    made = chrome.context(chromium)
    made.add_init_script(_OBSERVE)
    page = chrome.logged_in(hold, made)
    refused = {}
    for name, path in screens(ids).items():
        page.goto(url + path)
        settled(page, name)
        refused[name] = page.evaluate("window.refused")
    made.close()
    assert {name: found for name, found in refused.items() if found} == {}


def test_the_terminal_has_its_colours_and_sizes(hold: HomeForTests, url: str, desk: Page) -> None:
    """They come from what the emulator would write into style elements and attributes."""
    desk.add_init_script(_OBSERVE)
    session = hold.run("bash", "-c", _COLOURED, name="coloured")
    desk.goto(f"{url}/sessions/{session.id}")
    chrome.shows(desk, "red blue green done")
    rows = desk.locator(".xterm-rows > div").first
    expect(rows.get_by_text("blue")).to_have_css("background-color", "rgb(0, 0, 255)")
    expect(rows).to_have_css("overflow", "hidden")  # of the emulator's sheet
    red = rows.get_by_text("red").evaluate("(e) => getComputedStyle(e).color")
    assert red != rows.get_by_text("done").evaluate("(e) => getComputedStyle(e).color")
    assert desk.evaluate("window.refused") == []


def test_a_style_or_a_script_that_got_into_the_page_does_nothing(desk: Page) -> None:
    desk.evaluate(
        """() => {
          const hidden = new DOMParser().parseFromString("<style>body { display: none }</style>", "text/html").querySelector("style");
          document.head.append(document.adoptNode(hidden));
          const made = document.createElementNS("http://www.w3.org/1999/xhtml", "script");
          made.textContent = "window.ran = true";
          document.head.append(made);
          document.body.insertAdjacentHTML("beforeend", "<p id=in style='position:fixed' onclick='window.ran = true'>in</p>");
          document.getElementById("in").click();
        }"""
    )
    expect(desk.locator("body")).to_have_css("display", "block")
    expect(desk.locator("#in")).to_have_css("position", "static")
    assert desk.evaluate("window.ran") is None
