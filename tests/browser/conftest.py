"""Fixtures of the tests in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from holdfast import console
from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.web import serve


@pytest.fixture(autouse=True)
def built() -> None:
    """A checkout that could not reach Node's packages has no page (scripts/console_hook.py said so)."""
    if not (Path(console.__file__).parent / "static" / "index.html").exists():
        pytest.skip("the console is not built here")


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
