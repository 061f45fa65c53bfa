"""A view that lost its host comes back by itself, at its byte: a stalled network, a laptop asleep, a server killed.

How soon is measured by `make bench`; here it is that it does, and that the screen is the one of a fresh view.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support import browser as chrome
from tests.support.home import HomeForTests, until
from tests.support.network import Network, network
from tests.support.web import web_pid

expect.set_options(timeout=chrome.PATIENCE_MS)
_ASLEEP_S = 4.0  # longer than a page's timers are ever late, shorter than the silence that it would notice anyway
# Numbered lines, so that it shows when one comes twice or is left out.
_PROGRAM = 'n=0; while read -r -s line; do n=$((n+1)); for i in 1 2 3; do echo "line $n.$i $line"; done; done'


@pytest.fixture(scope="module")
def line() -> Iterator[Network]:
    with network() as made:
        yield made


@pytest.fixture(scope="module")
def distant(line: Network) -> Iterator[Browser]:
    """A browser whose every connection goes through the network."""
    with chrome.chromium(line.flag) as browser:
        yield browser


@pytest.fixture
def way(url: str, line: Network) -> Network:
    line.lead_to(url)
    return line


@pytest.fixture
def far(hold: HomeForTests, way: Network, distant: Browser) -> Iterator[Page]:
    """Somebody logged in, at the other end of a network."""
    made = chrome.context(distant)
    yield chrome.logged_in(hold, made)
    made.close()


def _opened(hold: HomeForTests, url: str, page: Page) -> str:
    session = hold.run("bash", "-c", _PROGRAM, name="counts")
    page.goto(f"{url}/sessions/{session.id}")
    chrome.attached(page)
    session.send("before", enter=True)
    chrome.shows(page, "line 1.3 before")
    return session.id


def _meanwhile(hold: HomeForTests, session: str) -> None:
    for n in range(20):
        hold.host.session(session).send(f"meanwhile {n}", enter=True)


def _whole(hold: HomeForTests, url: str, page: Page, session: str, near: Page, way: Network, rounds: int = 21) -> None:
    """Every line once, in order, and the screen that somebody sees who comes now."""
    way.give_up()  # else the browser tries to load the other page through one that was lost
    hold.host.session(session).send("after", enter=True)
    chrome.shows(page, f"line {rounds + 1}.3 after")
    wanted = [f"line {n}.{i}" for n in range(1, rounds + 2) for i in (1, 2, 3)]
    assert [" ".join(line.split()[:2]) for line in chrome.lines(page)] == wanted
    near.goto(f"{url}/sessions/{session}")
    chrome.shows(near, f"line {rounds + 1}.3 after")
    assert chrome.screen(page) == chrome.screen(near)


@pytest.fixture
def near(hold: HomeForTests, url: str, far: Page) -> Page:
    """A second page, to compare with."""
    return far.context.new_page()


def test_a_network_that_stalled_without_a_word(
    hold: HomeForTests, url: str, far: Page, near: Page, way: Network
) -> None:
    session = _opened(hold, url, far)
    way.stall()
    _meanwhile(hold, session)
    expect(far.get_by_text("Reconnecting")).to_be_visible()  # silence is noticed
    assert "meanwhile" not in chrome.screen(far)
    way.flow()
    chrome.shows(far, "line 21.3 meanwhile 19")
    _whole(hold, url, far, session, near, way)


def test_connections_that_are_lost_without_a_word(
    hold: HomeForTests, url: str, far: Page, near: Page, way: Network
) -> None:
    session = _opened(hold, url, far)
    way.lose()
    _meanwhile(hold, session)
    chrome.shows(far, "line 21.3 meanwhile 19")
    _whole(hold, url, far, session, near, way)


def test_a_laptop_that_slept(hold: HomeForTests, url: str, far: Page, near: Page, way: Network) -> None:
    """Asleep, nothing of the browser runs. Awake, its connections are gone and nobody has told it."""
    session = _opened(hold, url, far)
    processes = _browser(way)
    woken = time.monotonic() + _ASLEEP_S
    _signal(processes, signal.SIGSTOP)
    try:
        way.lose()
        _meanwhile(hold, session)
        until(lambda: time.monotonic() > woken, 60)
    finally:
        _signal(processes, signal.SIGCONT)
    chrome.shows(far, "line 21.3 meanwhile 19")
    _whole(hold, url, far, session, near, way)


def _browser(way: Network) -> list[psutil.Process]:
    mine = psutil.Process().children(recursive=True)
    return [p for p in mine if any(p == root or root in p.parents() for root in mine if way.flag in root.cmdline())]


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def test_a_web_process_that_was_killed_and_killed_again(
    hold: HomeForTests, url: str, far: Page, near: Page, way: Network
) -> None:
    session = _opened(hold, url, far)
    before = web_pid(hold)
    assert before is not None
    os.kill(before, signal.SIGKILL)
    _meanwhile(hold, session)
    chrome.shows(far, "line 21.3 meanwhile 19")
    again = web_pid(hold)
    assert again not in (None, before)
    os.kill(again or 0, signal.SIGKILL)  # the second time within seconds it is not started at once
    until(lambda: web_pid(hold) not in (None, before, again), 60)
    expect(far.locator('[data-connected="true"]')).to_be_attached()
    _whole(hold, url, far, session, near, way)


def test_typing_that_was_under_way_is_typed_once(hold: HomeForTests, url: str, far: Page, way: Network) -> None:
    session = _opened(hold, url, far)
    far.locator(".xterm-helper-textarea").focus()
    way.stall()
    far.keyboard.type("typed into the void\n")
    expect(far.get_by_text("Reconnecting")).to_be_visible()
    way.lose()
    way.flow()
    chrome.shows(far, "line 2.3 typed into the void")
    hold.host.session(session).send("after", enter=True)
    chrome.shows(far, "after")
    assert "line 3.3 after" in chrome.screen(far)
