"""Fixtures of the tests in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.web import serve


@pytest.fixture(scope="module")  # not longer: while it is open, no test of asyncio can run in this process
def chromium() -> Iterator[Browser]:
    with chrome.chromium() as browser:
        yield browser


@pytest.fixture
def url(hold: HomeForTests) -> str:
    return serve(hold)


@pytest.fixture
def desk(hold: HomeForTests, url: str, chromium: Browser) -> Iterator[Page]:
    """Somebody logged in, at a desk."""
    made = chrome.context(chromium)
    yield chrome.logged_in(hold, made)
    made.close()


@pytest.fixture
def phone(hold: HomeForTests, url: str, chromium: Browser) -> Iterator[Page]:
    """The same on a phone."""
    made = chrome.context(chromium, phone=True)
    yield chrome.logged_in(hold, made)
    made.close()
