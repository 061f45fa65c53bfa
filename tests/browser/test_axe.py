"""axe finds nothing on any screen, in either size and theme; and the shell is installable and small."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.screenshots import screens, settled
from tests.support import browser as chrome
from tests.support import touch
from tests.support.home import HomeForTests
from tests.support.showcase import fill

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
STATIC = ROOT / "src/holdfast/console/static"
expect.set_options(timeout=chrome.PATIENCE_MS)


def violations(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{v['id']}: {n['html'][:160]} {n.get('failureSummary', '')[:200]}"
        for v in found["violations"]
        for n in v["nodes"]
    ]


@pytest.mark.timeout(600)  # ten screens, four times, on a shared machine
@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_no_screen_has_a_violation(
    hold: HomeForTests, url: str, chromium: Browser, tmp_path: Path, phone: bool
) -> None:
    ids = fill(hold, tmp_path / "shop")
    for dark in (False, True):
        made = chrome.context(chromium, phone=phone, dark=dark)
        page = made.new_page()
        page.goto(url)
        page.get_by_role("button", name="Log in").wait_for()
        found = {"login": violations(page)}
        page = chrome.logged_in(hold, made)
        for name, path in screens(ids).items():
            page.goto(url + path)
            settled(page, name)
            found[name] = violations(page) + (touch.small(page) if phone else [])
        page.goto(url + "/sessions")
        page.get_by_role("button", name="New").click()
        found["dialog"] = violations(page)
        made.close()
        assert {name: v for name, v in found.items() if v} == {}


def test_the_page_is_installable_and_keeps_nothing_of_the_api(hold: HomeForTests, url: str, desk: Page) -> None:
    manifest = desk.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((r) => r.json())")
    assert manifest["display"] == "standalone"
    for icon in manifest["icons"]:
        assert desk.request.get(url + icon["src"]).headers["content-type"].startswith("image/")
    desk.wait_for_function("navigator.serviceWorker.ready.then((r) => r.active.state === 'activated')")
    hold.run("sleep", "600", name="seen")
    desk.reload()
    expect(desk.get_by_role("link", name="seen")).to_be_visible()
    kept = desk.evaluate(
        "caches.keys().then(async (names) => (await Promise.all(names.map(async (n) => (await (await caches.open(n)).keys()).map((k) => new URL(k.url).pathname)))).flat())"
    )
    assert "/" in kept
    assert not [path for path in kept if path.startswith("/api")]


def test_what_is_loaded_first_is_small() -> None:
    index = (STATIC / "index.html").read_text()
    todo, seen = set(re.findall(r'"/(assets/[\w.-]+\.js)"', index)), set()
    while todo:
        name = todo.pop()
        seen.add(name)
        text = (STATIC / name).read_text()
        todo |= {f"assets/{n}" for n in re.findall(r'from"\./([\w.-]+\.js)"', text)} - seen
    size = sum(len(gzip.compress((STATIC / name).read_bytes())) for name in seen)
    assert seen
    assert size < 200_000, json.dumps(sorted(seen))
