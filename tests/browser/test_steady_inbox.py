"""The inbox holds still under a finger: what is new waits to be asked for, and after a move no tap counts at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Locator, Page, expect

from holdfast.client._sync.host import Host
from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.operators import acting_as, enrol

expect.set_options(timeout=chrome.PATIENCE_MS)
STILL_MS = 600
Spot = tuple[float, float]


@pytest.fixture
def agent(hold: HomeForTests) -> Iterator[Host]:
    enrol(hold, "claude", sessions=["*"])
    with acting_as(hold, "claude") as host:
        yield host


@pytest.fixture
def still(phone: Page) -> Page:
    """An inbox whose clock stands: time passes where a test says so."""
    phone.clock.install()
    phone.reload()
    expect(phone.get_by_text("Nothing waits for you")).to_be_visible()
    phone.clock.pause_at(datetime.now(UTC) + timedelta(seconds=60))
    return phone


def _card(page: Page, text: str) -> Locator:
    return page.get_by_role("article").filter(has_text=text)


def _spot(page: Page, text: str) -> Spot:
    """Where its Yes is."""
    box = _card(page, text).get_by_role("button", name="Yes").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def _tap(page: Page, spot: Spot) -> None:
    page.mouse.click(*spot)
    page.evaluate("0")  # the page has heard it


def _drawn(page: Page) -> None:
    """Until a frame was drawn after this: the page has seen how large everything is. Its clock has no part in that."""
    page.evaluate("""() => new Promise((done) => {
      new IntersectionObserver((_, watch) => { watch.disconnect(); done(); }).observe(document.body);
    })""")


def _settle(page: Page) -> None:
    _drawn(page)
    page.clock.run_for(STILL_MS)


def test_new_items_wait_until_they_are_asked_for(agent: Host, still: Page) -> None:
    agent.ask("Delete the branch?", options=["Yes", "No"])
    expect(_card(still, "Delete the branch?")).to_be_visible()  # where nothing was shown, nothing moves
    _settle(still)
    before = _spot(still, "Delete the branch?")
    for text in ("Push to main?", "Deploy?"):
        agent.ask(text, options=["Yes", "No"])
    new = still.get_by_role("button", name="2 new")
    expect(new).to_be_visible()
    expect(still.get_by_role("article")).to_have_count(1)
    assert _spot(still, "Delete the branch?") == before
    _settle(still)
    new.click()
    expect(still.get_by_role("article")).to_have_count(3)
    expect(still.get_by_role("article").first).to_contain_text("Deploy?")
    expect(new).to_have_count(0)


def test_after_the_list_moved_no_tap_counts_for_a_moment(agent: Host, still: Page) -> None:
    first = agent.ask("Delete the branch?", options=["Yes", "No"])
    expect(_card(still, "Delete the branch?")).to_be_visible()
    second = agent.ask("Push to main?", options=["Yes", "No"])
    _settle(still)
    still.get_by_role("button", name="1 new").click()
    expect(still.get_by_role("article")).to_have_count(2)
    _settle(still)
    spot = _spot(still, "Push to main?")
    _tap(still, spot)
    assert agent.asked(second.id, timeout=60).answer == "Yes"
    expect(still.get_by_role("article")).to_have_count(1)
    _drawn(still)
    assert _spot(still, "Delete the branch?") == spot  # the next one has come under the finger
    still.clock.run_for(350)
    _tap(still, spot)  # a second tap, of a hand that has not seen that
    assert agent.asked(first.id).state == "open"
    still.clock.run_for(STILL_MS - 350)
    _tap(still, spot)
    assert agent.asked(first.id, timeout=60).answer == "Yes"


def test_the_last_answer_does_not_bring_what_is_new_under_the_finger(agent: Host, still: Page) -> None:
    first = agent.ask("Delete the branch?", options=["Yes", "No"])
    expect(_card(still, "Delete the branch?")).to_be_visible()
    agent.ask("Push to main?", options=["Yes", "No"])
    _settle(still)
    _tap(still, _spot(still, "Delete the branch?"))
    assert agent.asked(first.id, timeout=60).answer == "Yes"
    expect(still.get_by_role("article")).to_have_count(0)
    expect(still.get_by_text("1 new item waits")).to_be_visible()
    _settle(still)
    still.get_by_role("button", name="1 new").click()
    expect(_card(still, "Push to main?")).to_be_visible()
