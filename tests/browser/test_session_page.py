"""The page of a session acted on: its files, copy and search, what happened meanwhile, letters in the hand."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import CDPSession, Page, expect

from tests.support import browser as chrome
from tests.support.home import HomeForTests, until

pytestmark = pytest.mark.home("file")

expect.set_options(timeout=chrome.PATIENCE_MS)
SHELL = ["bash", "--norc", "--noprofile", "-i"]
CALM = {"PS1": "$ "}


def _open(page: Page, url: str, session: str) -> None:
    page.goto(f"{url}/sessions/{session}")
    chrome.attached(page)


def test_files_that_are_open_and_files_that_changed_are_shown_apart(
    hold: HomeForTests, url: str, desk: Page, tmp_path: Path
) -> None:
    session = hold.run(
        "bash", "-c", "exec 3>held; echo ready; while read -r name; do echo x > $name; done", cwd=str(tmp_path)
    )
    assert session.wait(text="ready", timeout=60).event != "timeout"
    _open(desk, url, session.id)
    desk.get_by_role("tab", name="Files").click()
    expect(desk.get_by_role("region", name="Open now")).to_contain_text(str(tmp_path / "held"))
    folder = desk.get_by_role("region", name="Changed in its folder")
    expect(folder).to_contain_text("held")
    expect(folder).to_contain_text("by any process")  # no more than the kernel knows
    session.send("made-later", enter=True)
    until((tmp_path / "made-later").exists, 60)
    folder.get_by_role("button", name="Look again").click()
    expect(folder).to_contain_text("made-later")


def test_files_whose_names_look_the_same_are_shown_each(
    hold: HomeForTests, url: str, desk: Page, tmp_path: Path
) -> None:
    session = hold.run("bash", "-c", r"touch odd$'\xff' 'odd\xff'; echo ready; sleep 600", cwd=str(tmp_path))
    session.wait(text="ready", timeout=60)
    _open(desk, url, session.id)
    desk.get_by_role("tab", name="Files").click()
    folder = desk.get_by_role("region", name="Changed in its folder")
    expect(folder.get_by_text("odd\\xff")).to_have_count(2)
    folder.get_by_role("button", name="Look again").click()
    expect(folder.get_by_role("button", name="Look again")).to_be_enabled()
    expect(folder.get_by_text("odd\\xff")).to_have_count(2)


def test_text_is_searched_forth_and_back_and_the_screen_is_copied(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run("bash", "-c", "for n in 1 2 3; do echo needle $n; done; sleep 600")
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    _open(desk, url, session.id)
    chrome.shows(desk, "needle 3")
    desk.get_by_role("button", name="Search").click()
    found = desk.get_by_role("search").get_by_role("status")
    desk.get_by_label("Search in the output").fill("needle")
    expect(found).to_contain_text("of 3")
    before = found.inner_text()
    desk.keyboard.press("Enter")
    expect(found).not_to_have_text(before)
    desk.keyboard.press("Shift+Enter")
    expect(found).to_have_text(before)
    desk.get_by_label("Search in the output").fill("haystack")
    expect(found).to_have_text("none")
    desk.get_by_role("button", name="Close the search").click()
    desk.get_by_role("button", name="Copy").click()
    expect(desk.get_by_role("button", name="Copied")).to_be_visible()
    assert desk.evaluate("navigator.clipboard.readText()") == "needle 1\nneedle 2\nneedle 3"


def test_what_happened_while_one_was_away_is_told_and_leads_into_the_replay(
    hold: HomeForTests, url: str, desk: Page
) -> None:
    session = hold.run(*SHELL, name="shell", env=CALM)
    session.exec("echo before I left", timeout=60)
    _open(desk, url, session.id)
    chrome.shows(desk, "before I left")
    expect(desk.get_by_label("While you were away")).to_have_count(0)
    desk.goto(f"{url}/sessions")
    left = desk.evaluate("new Date().toISOString()")
    desk.evaluate("([key, at]) => localStorage.setItem(key, at)", [f"seen:{session.id}", left])
    session.exec("echo meanwhile", timeout=60)
    desk.clock.set_fixed_time(time.time() + 7230)  # and comes back after two hours
    _open(desk, url, session.id)
    away = desk.get_by_label("While you were away")
    expect(away).to_contain_text("ran 1 command")
    expect(away).to_contain_text("2 h ago")
    away.get_by_role("link", name="Replay").click()
    desk.wait_for_url("**/replay?at=*")
    chrome.shows(desk, "before I left")
    assert "\nmeanwhile" not in chrome.screen(desk)  # the jump leads to where it was left
    expect(desk.get_by_label("Position")).to_be_enabled()
    desk.get_by_label("Position").focus()
    desk.keyboard.press("End")
    chrome.shows(desk, "\nmeanwhile")


def _size(page: Page) -> float:
    return float(page.evaluate("window.holdfast.term.options.fontSize"))


def _fingers(line: CDPSession, kind: str, *points: tuple[float, float]) -> None:
    line.send(
        "Input.dispatchTouchEvent",
        {"type": kind, "touchPoints": [{"x": x, "y": y, "id": n} for n, (x, y) in enumerate(points)]},
    )


def test_a_replay_in_the_hand_is_readable_and_moved_about(hold: HomeForTests, url: str, phone: Page) -> None:
    session = hold.run("bash", "-c", "printf '%0120d\\n' 7; seq 60; sleep 600", size=(120, 70))
    session.wait(text="60", timeout=60)
    phone.goto(f"{url}/sessions/{session.id}/replay")
    expect(phone.get_by_label("Position")).to_be_enabled()
    phone.get_by_label("Position").focus()
    phone.keyboard.press("End")
    chrome.shows(phone, "\n60")
    phone.wait_for_function("() => window.holdfast.term.options.fontSize === 11")
    box = phone.get_by_role("region", name="Recorded terminal").locator(".box")
    assert box.evaluate("(b) => b.scrollWidth > b.clientWidth && b.scrollHeight > b.clientHeight")
    before = phone.wait_for_function(
        "() => document.querySelector('.box').scrollTop"
    )  # what was printed last is in sight
    line = phone.context.new_cdp_session(phone)
    _fingers(line, "touchStart", (300, 150))
    for n in range(1, 9):
        _fingers(line, "touchMove", (300 - 25 * n, 150 + 25 * n))
    _fingers(line, "touchEnd")
    moved = (
        "([top]) => { const b = document.querySelector('.box'); return b.scrollLeft > 100 && b.scrollTop < top - 100; }"
    )
    phone.wait_for_function(moved, arg=[before.json_value()])
    _fingers(line, "touchStart", (150, 250), (200, 250))
    for spread in (60, 80, 100):
        _fingers(line, "touchMove", (175 - spread / 2, 250), (175 + spread / 2, 250))
    _fingers(line, "touchEnd")
    phone.wait_for_function("() => window.holdfast.term.options.fontSize >= 20")
    phone.reload()
    phone.wait_for_function("() => window.holdfast?.term.options.fontSize >= 20")


def test_letters_in_the_hand_are_readable_moved_about_and_pinched(hold: HomeForTests, url: str, phone: Page) -> None:
    session = hold.run("bash", "-c", "printf '%0120d\\n' 7; sleep 600", size=(120, 30))
    _open(phone, url, session.id)
    chrome.shows(phone, "0007")
    phone.wait_for_function("() => window.holdfast.term.options.fontSize === 11")
    box = phone.locator("[data-connected]")
    assert box.evaluate("(b) => b.scrollWidth > b.clientWidth")  # wider than the glass: it is moved, not made tiny
    line = phone.context.new_cdp_session(phone)
    _fingers(line, "touchStart", (300, 300))
    for x in (250, 200, 150, 100):
        _fingers(line, "touchMove", (x, 300))
    _fingers(line, "touchEnd")
    phone.wait_for_function("() => document.querySelector('[data-connected]').scrollLeft > 100")
    _fingers(line, "touchStart", (150, 300), (200, 300))
    for spread in (60, 80, 100):
        _fingers(line, "touchMove", (175 - spread / 2, 300), (175 + spread / 2, 300))
    _fingers(line, "touchEnd")
    phone.wait_for_function("() => window.holdfast.term.options.fontSize >= 20")
    phone.reload()  # what was chosen is kept
    chrome.attached(phone)
    phone.wait_for_function("() => window.holdfast?.term.options.fontSize >= 20")
    phone.get_by_role("button", name="More").click()
    phone.get_by_role("button", name="Smaller letters").click()
    smaller = _size(phone)
    phone.get_by_role("button", name="Larger letters").click()
    phone.wait_for_function("(px) => window.holdfast.term.options.fontSize === px + 1", arg=smaller)
    phone.get_by_role("button", name="Usual").click()
    phone.wait_for_function("() => window.holdfast.term.options.fontSize === 11")
