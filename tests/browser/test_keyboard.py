"""Whole ways by keyboard alone: from the inbox through an answer into a session, and out of its terminal again."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from holdfast.model.errors import HoldfastError
from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.operators import acting_as, enrol

expect.set_options(timeout=chrome.PATIENCE_MS)
STEPS_MAX = 40  # presses of Tab to get anywhere on a page


def _tab_to(page: Page, wanted: Locator, key: str = "Tab") -> None:
    """Press Tab until something has the focus; it is visible there."""
    wanted.wait_for()
    for _ in range(STEPS_MAX):
        page.keyboard.press(key)
        if wanted.evaluate("(e) => e === document.activeElement"):
            return
    raise AssertionError(f"{wanted} is not reached by {key}")


def test_from_an_inbox_card_to_a_session_and_back_without_a_mouse(hold: HomeForTests, url: str, desk: Page) -> None:
    enrol(hold, "claude", sessions=["*"])
    session = hold.run("bash", "--norc", "--noprofile", "-i", name="shell", env={"PS1": "$ "})
    session.take()
    with acting_as(hold, "claude") as agent, pytest.raises(HoldfastError, match="controls"):
        agent.session("shell").take(why="to fix the tests")
    desk.goto(f"{url}/inbox")
    card = desk.get_by_role("article", name="claude wants the controls")
    _tab_to(desk, desk.get_by_role("link", name="Skip to the page"))
    desk.keyboard.press("Enter")
    approve = card.get_by_role("button", name="Approve")
    _tab_to(desk, approve)
    expect(approve).not_to_have_attribute("aria-disabled", "true")  # for a moment after the list has moved
    desk.keyboard.press("Enter")
    expect(card).to_have_count(0)
    assert session.status().controls.name == "claude"
    expect(desk.get_by_role("heading", name="Inbox")).to_be_focused()  # not lost with the card
    _tab_to(desk, desk.get_by_role("navigation").get_by_role("link", name="Sessions"), "Shift+Tab")
    desk.keyboard.press("Enter")
    expect(desk.get_by_role("main")).to_be_focused()
    _tab_to(desk, desk.get_by_role("link", name="shell", exact=True))
    desk.keyboard.press("Enter")
    chrome.attached(desk)
    expect(desk.locator(".xterm-helper-textarea")).to_be_focused()
    desk.keyboard.press("Control+Shift+L")
    _tab_to(desk, desk.get_by_role("button", name="Take over"))
    desk.keyboard.press("Enter")
    expect(desk.get_by_text("You hold the controls")).to_be_visible()
    _tab_to(desk, desk.locator(".xterm-helper-textarea"))
    desk.keyboard.type("echo by $((6*7)) keys\n")
    chrome.shows(desk, "by 42 keys")
    desk.keyboard.press("Control+Shift+L")
    _tab_to(desk, desk.get_by_role("button", name="Search"))
    desk.keyboard.press("Enter")
    expect(desk.get_by_label("Search in the output")).to_be_focused()
    desk.keyboard.press("Escape")
    expect(desk.locator(".xterm-helper-textarea")).to_be_focused()
    desk.keyboard.press("Control+Shift+L")
    _tab_to(desk, desk.get_by_role("button", name="Hand back…"))
    desk.keyboard.press("Enter")
    expect(desk.get_by_role("dialog", name="Hand the controls back")).to_be_visible()
    desk.keyboard.press("Escape")
    expect(desk.get_by_role("button", name="Hand back…")).to_be_focused()  # where it was before the question
    _tab_to(desk, desk.get_by_role("button", name="Skip the terminal"))  # which keeps Tab for its program
    desk.keyboard.press("Enter")
    _tab_to(desk, desk.get_by_role("tab", name="Processes"))
    desk.keyboard.press("ArrowLeft")
    expect(desk.get_by_role("tab", name="Files")).to_be_focused()
