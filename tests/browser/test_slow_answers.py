"""Answers that take long: they are waited for where that is meant, and never undo what the page was told meanwhile."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.web import web_pid

Json = dict[str, Any]
expect.set_options(timeout=chrome.PATIENCE_MS)
_LOOK_S = 20.0  # how long a page waits for an ordinary look (ANSWER_MS of web/src/lib/api.ts)


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_the_check_of_a_journal_may_take_longer_than_a_look(hold: HomeForTests, url: str, desk: Page) -> None:
    desk.goto(f"{url}/access")
    section = desk.get_by_role("region", name="Journal")
    section.get_by_role("button", name="Verify").wait_for()
    with _stopped(hold.daemon_pid()):
        section.get_by_role("button", name="Verify").click()
        asked = time.monotonic()
        while time.monotonic() - asked < _LOOK_S + 3:  # there is no event for an answer that does not come
            expect(section.get_by_role("button")).to_have_text("Verifying…")
            desk.wait_for_timeout(500)
    expect(section).to_contain_text("every hash and signature checked")


class _Held:
    """An answer that the server gave and the page has not got yet."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._held: list[tuple[Route, str]] = []
        self._page, self._pattern = page, pattern
        page.route(pattern, self._hold)

    def _hold(self, route: Route) -> None:
        self._held.append((route, route.fetch().text()))

    def until_given(self) -> None:
        deadline = time.monotonic() + chrome.PATIENCE_MS / 1000
        while not self._held:
            assert time.monotonic() < deadline
            self._page.wait_for_timeout(50)  # in which the browser's own events are served

    def deliver(self, change: Callable[[list[Json]], None] = lambda found: None) -> None:
        for route, text in self._held:
            found = json.loads(text)
            change(found)
            route.fulfill(json=found)
        self._page.unroute(self._pattern)


def _one_more(found: list[Json]) -> None:
    """A sign that the page has taken an answer in: something is in it that nothing else tells of."""
    found.append({**found[0], "id": "ses_late", "name": "late"})


def test_a_slow_answer_does_not_overwrite_what_was_told_meanwhile(hold: HomeForTests, url: str, desk: Page) -> None:
    first, second = hold.run("sleep", "600", name="first"), hold.run("true", name="second")
    asked = hold.host.call("ask", text="Which way?", options=["left", "right"])
    second.wait(exit=True, timeout=60)
    desk.add_init_script(
        "AbortSignal.any = () => new AbortController().signal"
    )  # however slow this machine is just now
    desk.goto(f"{url}/sessions")
    rows, badge = (
        desk.get_by_role("main"),
        desk.get_by_role("navigation", name="Main").get_by_role("link", name="Inbox"),
    )
    desk.get_by_role("button", name="Show ended").click()
    for name in ("first", "second"):
        expect(rows.get_by_role("link", name=name)).to_be_visible()
    expect(badge).to_contain_text("1")
    sessions, inbox = _Held(desk, "**/api/sessions?all=*"), _Held(desk, "**/api/inbox?all=*")
    os.kill(web_pid(hold) or 0, signal.SIGKILL)  # a page whose line is back asks for its lists
    sessions.until_given()
    inbox.until_given()
    first.rename("renamed")
    second.remove()
    hold.host.answer(asked["id"], "left")
    expect(rows.get_by_role("link", name="renamed")).to_be_visible()
    for name in ("first", "second"):
        expect(rows.get_by_role("link", name=name)).to_have_count(0)
    expect(badge).not_to_contain_text("1")
    inbox.deliver()
    sessions.deliver(_one_more)
    expect(rows.get_by_role("link", name="late")).to_be_visible()
    shown = [rows.get_by_role("link", name=name).count() for name in ("renamed", "first", "second")]
    assert (shown, "1" in badge.inner_text()) == ([1, 0, 0], False)
