"""A terminal in the page: typing, the controls, leaving it by keyboard, and coming back after anything."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support import browser as chrome
from tests.support.home import HomeForTests, until
from tests.support.operators import acting_as, enrol
from tests.support.web import web_pid

pytestmark = pytest.mark.home("file")

expect.set_options(timeout=chrome.PATIENCE_MS)
SHELL = ["bash", "--norc", "--noprofile", "-i"]
CALM = {"PS1": "$ "}


def _open(page: Page, url: str, session: str) -> None:
    page.goto(f"{url}/sessions/{session}")
    chrome.attached(page)


def test_what_is_typed_reaches_the_program(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run(*SHELL, name="shell", env=CALM)
    _open(desk, url, session.id)
    chrome.shows(desk, "$")
    desk.keyboard.type("echo $((6*7)) ünï\n")
    chrome.shows(desk, "42 ünï")
    expect(desk.get_by_text("You hold the controls")).to_be_visible()
    size = session.status().pty
    assert size is not None
    assert size.cols > 80  # the holder's window sizes the terminal
    desk.get_by_role("button", name="Hand back…").click()
    desk.get_by_role("button", name="Hand back", exact=True).click()
    expect(desk.get_by_text("The controls are free")).to_be_visible()


@pytest.mark.home("own")
def test_a_person_takes_over_from_an_agent_and_hands_back_with_a_note(hold: HomeForTests, url: str, desk: Page) -> None:
    enrol(hold, "claude", sessions=["*"])
    with acting_as(hold, "claude") as agent:
        session = agent.run(SHELL, name="shell", env={**CALM, "HOLDFAST_HOME": str(hold.path)})
        session.take()
        _open(desk, url, session.id)
        expect(desk.get_by_text("claude agent holds the controls")).to_be_visible()
        desk.keyboard.type("x")
        expect(desk.get_by_role("alert").get_by_text("Take over to type")).to_be_visible()
        pid = session.status().pid
        desk.get_by_role("button", name="Take over").click()
        expect(desk.get_by_text("You hold the controls")).to_be_visible()
        desk.locator(".xterm-helper-textarea").focus()
        desk.keyboard.type("echo by hand\n")
        chrome.shows(desk, "\nby hand")
        desk.get_by_role("button", name="Hand back…").click()
        expect(desk.get_by_label("To").locator("option:checked")).to_have_text("claude (agent)")  # whom they came from
        desk.get_by_label("Note").fill("the tests are green now")
        desk.get_by_role("button", name="Hand back", exact=True).click()
        expect(desk.get_by_text("claude agent holds the controls")).to_be_visible()
        assert session.status().pid == pid
        handed = [e for e in hold.host.timeline(session.id)["entries"] if e["kind"] == "hand"]
        assert [e["note"] for e in handed] == ["the tests are green now"]


PASTES = """
import os, tty
tty.setraw(0)
os.write(1, b"\\x1b[?2004hready\\r\\n")
while True:
    os.write(1, ascii(os.read(0, 4096)).encode() + b"\\r\\n")
"""


def test_pasted_text_cannot_leave_its_brackets_or_press_keys(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run(sys.executable, "-c", PASTES)
    _open(desk, url, session.id)
    chrome.shows(desk, "ready")
    paste = """(text) => {
      const held = new DataTransfer();
      held.setData("text/plain", text);
      const event = new ClipboardEvent("paste", { clipboardData: held, bubbles: true, cancelable: true });
      document.querySelector(".xterm-helper-textarea").dispatchEvent(event);
    }"""
    hostile = {
        "\x1b[201~": "",
        "\x9b201~": "",
        "\x1b\x1b[201~[201~": "[201~",
        "\x1b]0;x\x07": "",
        "\x1bP1000p\x1b\\": "",
        "\x1b]unended": "unended",
        "\x03\x04\x1a": "",
    }
    for text, left in hostile.items():
        start = session.status().output.end
        desk.evaluate(paste, f"one\ttwo{text}\nrm -rf ~\n")
        typed = ascii(f"\x1b[200~one\ttwo{left}\rrm -rf ~\r\x1b[201~".encode())
        found = session.wait(text=re.escape(typed), start=start, timeout=30)
        assert found.event == "text", text


def test_the_keyboard_gets_out_of_the_terminal(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run("sleep", "600")
    _open(desk, url, session.id)
    desk.locator(".xterm-helper-textarea").focus()
    desk.keyboard.press("Tab")
    assert desk.evaluate("document.activeElement.className") == "xterm-helper-textarea"
    desk.keyboard.press("Control+Shift+L")
    assert desk.evaluate("document.activeElement.id") == "leave-terminal"
    desk.keyboard.press("Tab")
    assert desk.evaluate("document.activeElement.tagName") == "BUTTON"


def test_a_screen_reader_gets_the_output_as_text(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run("bash", "-c", "echo to be read; sleep 600", name="says")
    _open(desk, url, session.id)
    chrome.shows(desk, "to be read")
    desk.get_by_role("button", name="More").click()
    desk.get_by_label("For a screen reader").check()
    desk.get_by_role("button", name="Close").click()
    expect(desk.locator(".xterm-accessibility")).to_contain_text("to be read")


def test_text_is_found_and_the_tabs_tell_of_processes_and_people(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run(*SHELL, name="shell", env=CALM)
    session.exec("echo needle in a haystack", timeout=60, why="looking")
    _open(desk, url, session.id)
    chrome.shows(desk, "needle")
    desk.get_by_role("button", name="Search").click()
    desk.get_by_label("Search in the output").fill("haystack")
    expect(desk.get_by_role("search").get_by_role("status")).to_contain_text("of")
    desk.keyboard.press("Escape")
    expect(desk.get_by_role("tabpanel")).to_contain_text("bash --norc")
    desk.get_by_role("tab", name="Processes").focus()
    desk.keyboard.press("ArrowRight")
    desk.keyboard.press("ArrowRight")
    expect(desk.get_by_role("tabpanel")).to_contain_text("looking")


def test_an_ended_session_shows_how_it_ended_and_starts_again(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run("bash", "-c", "echo first; exit 4", name="short")
    assert session.wait(exit=True, timeout=60).event != "timeout"
    desk.goto(f"{url}/sessions/{session.id}")
    expect(desk.get_by_text("This session has ended")).to_be_visible()
    expect(desk.get_by_text("exit 4", exact=True)).to_be_visible()
    chrome.shows(desk, "first")
    desk.get_by_role("button", name="Start again").click()
    until(lambda: session.status().generation == 2, 60)


def _counted(hold: HomeForTests, url: str, page: Page) -> str:
    """A program that prints a numbered line for each line it is sent."""
    program = 'n=0; while read -r -s line; do n=$((n+1)); for i in 1 2 3; do echo "line $n.$i $line"; done; done'
    session = hold.run("bash", "-c", program, name="counts")
    _open(page, url, session.id)
    session.send("before", enter=True)
    chrome.shows(page, "line 1.3 before")
    return session.id


def _same_as_a_fresh_view(hold: HomeForTests, url: str, page: Page, session: str, last: str) -> None:
    chrome.shows(page, last)
    fresh = page.context.new_page()
    _open(fresh, url, session)
    chrome.shows(fresh, last)
    assert chrome.screen(page) == chrome.screen(fresh)
    fresh.close()


def test_a_view_whose_network_stalled_goes_on_where_it_was(hold: HomeForTests, url: str, desk: Page) -> None:
    session = _counted(hold, url, desk)
    desk.context.set_offline(True)
    for n in range(20):
        hold.host.session(session).send(f"meanwhile {n}", enter=True)
    expect(desk.get_by_text("Reconnecting")).to_be_visible()
    desk.context.set_offline(False)
    _same_as_a_fresh_view(hold, url, desk, session, "line 21.3 meanwhile 19")
    hold.host.session(session).send("after", enter=True)
    _same_as_a_fresh_view(hold, url, desk, session, "line 22.3 after")


@pytest.mark.home("own")
def test_a_view_outlives_the_web_process_and_the_host(hold: HomeForTests, url: str, desk: Page) -> None:
    session = _counted(hold, url, desk)
    for kill in (lambda: os.kill(web_pid(hold) or 0, signal.SIGKILL), hold.kill_daemon):
        kill()
        hold.host.session(session).send("meanwhile", enter=True)
    _same_as_a_fresh_view(hold, url, desk, session, "line 3.3 meanwhile")


def test_a_flood_ends_in_the_same_screen_and_a_bounded_buffer(hold: HomeForTests, url: str, desk: Page) -> None:
    session = hold.run(
        "bash", "-c", "read -r -s go; seq -f 'line %.0f of a long output' 300000; echo flood over; sleep 600"
    )
    _open(desk, url, session.id)
    session.send("go", enter=True)
    _same_as_a_fresh_view(hold, url, desk, session.id, "flood over")
    assert desk.evaluate("window.holdfast.term.buffer.active.length") <= 5100


def test_a_replay_is_scrubbed_to_what_an_agent_did(hold: HomeForTests, url: str, desk: Page, chromium: Browser) -> None:
    session = hold.run(*SHELL, name="shell", env=CALM)
    session.exec("echo one", timeout=60)
    session.exec("echo two; false", timeout=60)
    desk.goto(f"{url}/sessions/{session.id}/replay")
    marks = desk.get_by_label("Marks")
    expect(marks).to_contain_text("exit 0")
    expect(marks).to_contain_text("exit 1")
    desk.get_by_label("Position").focus()
    desk.keyboard.press("End")
    chrome.shows(desk, "\ntwo")
    desk.keyboard.press("Home")
    desk.wait_for_function(
        "() => !window.holdfast.term.buffer.active.getLine(3)?.translateToString(true).includes('two')"
    )
    marks.get_by_role("button").last.click()
    chrome.shows(desk, "\none")
