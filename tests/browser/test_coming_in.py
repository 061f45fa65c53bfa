"""Logging in by a link, and the list of what runs."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect

from tests.support import browser as chrome
from tests.support.console import link
from tests.support.home import HomeForTests

expect.set_options(timeout=chrome.PATIENCE_MS)


def test_a_link_logs_in_once_and_leaves_the_address(hold: HomeForTests, url: str, chromium: Browser) -> None:
    given = link(hold)["link"]
    made = chrome.context(chromium)
    page = made.new_page()
    page.goto(given)
    expect(page).to_have_url(url + "/sessions")
    cookies = made.cookies()
    assert [(c["httpOnly"], c["sameSite"]) for c in cookies] == [(True, "Strict")]
    page.reload()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    made.close()

    other = chrome.context(chromium)
    page = other.new_page()
    page.goto(given)
    expect(page.get_by_role("alert")).to_contain_text(re.compile("link|token", re.I))
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    page.get_by_label("Login link").fill(link(hold)["link"])
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    other.close()


def test_logging_out_ends_it_for_every_tab(desk: Page, url: str) -> None:
    other = desk.context.new_page()
    other.goto(url + "/sessions")
    expect(other.get_by_role("heading", name="Sessions")).to_be_visible()
    desk.goto(url + "/access")
    desk.get_by_role("button", name="Log out").click()
    expect(desk.get_by_label("Login link")).to_be_visible()
    expect(other.get_by_label("Login link")).to_be_visible()


def test_sessions_come_change_and_go_by_themselves(hold: HomeForTests, desk: Page) -> None:
    expect(desk.get_by_text("Nothing is running")).to_be_visible()
    session = hold.run("bash", "-c", "read -r -p 'Go on? ' a; exit 3", name="asks")
    row = desk.locator(f"[data-session={session.id}]")
    expect(row).to_contain_text("waits for input")
    expect(row).to_contain_text("Go on?")
    session.send("yes", enter=True)
    expect(row).to_have_count(0)
    desk.get_by_role("button", name="Show ended").click()
    expect(row).to_contain_text("exit 3")
    hold("rm", session.id)
    expect(row).to_have_count(0)


def test_a_session_can_be_started_here(hold: HomeForTests, desk: Page) -> None:
    desk.get_by_role("button", name="New").click()
    desk.get_by_label("Command").fill("echo started here; sleep 600")
    desk.get_by_label("Name").fill("made")
    desk.get_by_role("button", name="Start", exact=True).click()
    chrome.shows(desk, "started here")
    assert [s["name"] for s in hold.host.call("ls")] == ["made"]


def test_ports_are_links_under_a_name_to_which_no_cookie_goes(hold: HomeForTests, desk: Page) -> None:
    session = hold.run("python3", "-m", "http.server", "0", "--bind", "127.0.0.1", name="web")
    row = desk.locator(f"[data-session={session.id}]")
    port = row.get_by_role("link", name=re.compile(r"^:\d+$"))
    expect(port).to_have_attribute("href", re.compile(r"^http://localhost:\d+/$"))
    expect(port).to_have_attribute("rel", "noopener noreferrer")
