"""Access acted on in the page: people and agents let in and out, a device paired, the journal verified."""

from __future__ import annotations

import re
import sqlite3

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support import browser as chrome
from tests.support import qr
from tests.support.home import HomeForTests, until
from tests.support.operators import journal

expect.set_options(timeout=chrome.PATIENCE_MS)


def _access(page: Page, url: str) -> None:
    page.goto(f"{url}/access")
    page.get_by_role("heading", name="Operators").wait_for()


def _add(page: Page, name: str, kind: str, sessions: str) -> None:
    page.get_by_role("button", name="Add…").click()
    dialog = page.get_by_role("dialog", name="Add an operator")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_label("Kind").select_option(kind)
    dialog.get_by_role("textbox", name="Sessions").fill(sessions)
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("listitem", name=name)).to_be_visible()


def _pair(page: Page, whom: str | None = None) -> str:
    """The link that a page shows for another device."""
    page.get_by_role("button", name="Pair a device…").click()
    dialog = page.get_by_role("dialog", name="Pair a device")
    if whom is not None:
        dialog.get_by_label("For").select_option(label=whom)
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_label("Link").input_value()
    assert "#login=" in link
    return link


def test_somebody_let_in_sees_what_was_granted_and_their_page_ends_when_they_are_revoked(
    hold: HomeForTests, url: str, desk: Page, chromium: Browser
) -> None:
    build, secret = hold.run("bash", "-c", "echo building; cat", name="build"), hold.run("sleep", "600", name="private")
    _access(desk, url)
    _add(desk, "anna", "human", "build")
    link = _pair(desk, "anna")
    elsewhere = chrome.context(chromium, phone=True)
    phone = elsewhere.new_page()
    phone.goto(link)
    phone.get_by_role("navigation", name="Main").get_by_role("link", name="Sessions").click()
    expect(phone.get_by_role("link", name="build")).to_be_visible()
    expect(phone.get_by_role("link", name="private")).to_have_count(0)
    assert phone.request.get(f"{url}/api/sessions/{secret.id}").status in (403, 404)
    phone.goto(f"{url}/sessions/{build.id}")
    chrome.shows(phone, "building")
    phone.get_by_label("Text to type").fill("hello from anna")
    phone.get_by_role("button", name="Send").click()
    assert build.wait(text="hello from anna", timeout=60).event != "timeout"
    assert build.status().controls.name == "anna"

    desk.get_by_role("button", name="Done").click()
    desk.get_by_role("button", name="Revoke anna").click()
    desk.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(desk.get_by_role("listitem", name="anna")).to_have_count(0)
    expect(phone.get_by_role("button", name="Log in")).to_be_visible()  # at once, without being touched
    assert phone.request.get(f"{url}/api/me").status == 401
    desk.get_by_role("button", name="Show revoked").click()
    expect(desk.get_by_role("listitem", name="anna")).to_contain_text("revoked")
    elsewhere.close()


def test_a_grant_is_given_and_ended_and_the_rest_stays(hold: HomeForTests, url: str, desk: Page) -> None:
    hold.host.add_operator("bot", "agent", sessions=["build"])
    _access(desk, url)
    row = desk.get_by_role("listitem", name="bot")
    row.get_by_role("button", name="Grant bot more").click()
    dialog = desk.get_by_role("dialog", name="Grant bot more")
    expect(dialog.get_by_label("approve")).to_have_count(0)  # never an agent's
    for verb in ("start", "exec", "stop", "work", "signal", "resize", "type", "request control"):
        dialog.get_by_label(re.compile(f"^{verb} ")).uncheck()
    dialog.get_by_role("textbox", name="Sessions").fill("deploy-*")
    dialog.get_by_label("For how long").fill("8h")
    dialog.get_by_role("button", name="Grant", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(row).to_contain_text("view on deploy-*, until")
    row.get_by_role("button", name="End this grant of bot: view").click()
    desk.get_by_role("dialog").get_by_role("button", name="End the grant").click()
    expect(row.get_by_role("button", name="End this grant of bot: view")).to_have_count(0)
    bot = next(o for o in hold.host.operators() if o["name"] == "bot")
    assert [(g["sessions"], g["state"]) for g in bot["grants"] if g["state"] == "in force"] == [(["build"], "in force")]
    assert [e["grant_id"] is not None for e in journal(hold, "revoke")] == [True]


def _drawn(page: Page) -> list[list[bool]]:
    """The modules of the code that the page shows."""
    picture = page.get_by_role("img", name="QR code")
    size = int(str(picture.get_attribute("viewBox")).split()[2])
    path = str(picture.locator("path").get_attribute("d"))
    dark = {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)", path)}
    return [[(x, y) in dark for x in range(size)] for y in range(size)]


def test_a_device_is_paired_by_a_code_that_works_once_and_says_where_it_reaches(
    hold: HomeForTests, url: str, desk: Page, chromium: Browser
) -> None:
    _access(desk, url)
    link = _pair(desk)
    assert link.startswith(url)  # the address that the page itself came by
    assert qr.read(_drawn(desk)) == link
    dialog = desk.get_by_role("dialog", name="Pair a device")
    expect(dialog).to_contain_text("this machine alone")
    expect(dialog).to_contain_text("ssh -L")
    elsewhere = chrome.context(chromium, phone=True)
    phone = elsewhere.new_page()
    phone.goto(link)
    expect(phone.get_by_role("heading", name="Inbox")).to_be_visible()
    elsewhere.close()
    third = chrome.context(chromium)
    late = third.new_page()
    late.goto(link)
    expect(late.get_by_role("alert")).to_contain_text("used before")
    third.close()
    assert [e["kind"] for e in journal(hold, "link", "login")][-2:] == ["link", "login"]


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
def test_the_journal_is_verified(hold: HomeForTests, url: str, desk: Page, broken: bool) -> None:
    hold.run("sleep", "600", name="noted")
    if broken:
        until(lambda: journal(hold, "start"))  # written down: there is something to change
        db = sqlite3.connect(hold.path / "host.db")
        db.execute("UPDATE entries SET body = replace(body, 'noted', 'other') WHERE session IS NOT NULL")
        db.commit()
        db.close()
    _access(desk, url)
    section = desk.get_by_role("region", name="Journal")
    section.get_by_role("button", name="Verify").click()
    expect(section.get_by_role("status").locator(".chip")).to_have_text("broken" if broken else "whole")
