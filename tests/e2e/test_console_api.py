"""The console's API over a real port: log in, look, act, and both sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.console import Browser
from tests.support.home import HomeForTests, alive
from tests.support.web import serve


@pytest.fixture
def browser(hold: HomeForTests) -> Iterator[Browser]:
    made = Browser(hold, serve(hold))
    yield made
    made.close()


def test_a_browser_logs_in_and_sees_who_it_is(hold: HomeForTests, browser: Browser) -> None:
    me = browser.get("/api/me")
    assert me["operator"]["kind"] == "human"
    assert me["host"]["id"] == hold.host.call("ping")["host"]["id"]
    assert me["grants"]


def test_a_session_is_started_typed_into_stopped_and_removed(hold: HomeForTests, browser: Browser) -> None:
    made = browser.post("/api/sessions", status=201, command=["cat"], name="kitten", why="a test")
    assert made["name"] == "kitten"
    assert alive(made["pid"])
    assert [s["name"] for s in browser.get("/api/sessions")] == ["kitten"]
    browser.post("/api/sessions/kitten/send", text="meow", enter=True)
    assert hold.host.session("kitten").wait(text="meow\r?\nmeow", start=0, timeout=60).event == "text"
    assert browser.get("/api/sessions")[0]["last_line"] == "meow"
    assert "meow" in browser.get("/api/sessions/kitten/screen")["text"]
    assert browser.get(f"/api/sessions/{made['id']}")["processes"]
    assert browser.post("/api/sessions/kitten/rename", name="cat")["name"] == "cat"
    assert browser.post("/api/sessions/cat/stop", grace_s=5)["state"] == "exited"
    assert browser.get("/api/sessions") == []
    assert [s["name"] for s in browser.get("/api/sessions", all="true")] == ["cat"]
    kinds = [e["kind"] for e in browser.get("/api/sessions/cat/timeline")["entries"]]
    assert {"start", "send", "stop", "ended"} <= set(kinds)
    browser.delete("/api/sessions/cat")
    assert browser.get("/api/sessions", all=1) == []


async def test_a_terminal_is_restored_and_goes_on_live(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("bash", "--norc", name="shell")
    session.send("echo before-$((40+2))\r")
    session.wait(text="before-42", start=0, timeout=60)
    async with browser.socket("/api/sessions/shell/attach?client=one") as socket:
        about = await socket.text("attached")
        assert about["session"] == session.id
        await socket.sees(b"before-42")
        assert socket.restored is not None
        await socket.type(b"echo after-$((1+1))\r")
        await socket.sees(b"after-2")
        assert (await socket.text("controls", mine=True))["holder"] == browser.get("/api/me")["operator"]["id"]
        assert (await socket.text("typed"))["seq"] == 1
        await socket.type(b"exit 7\r")
        assert (await socket.text("exit"))["exit"]["code"] == 7
        assert await socket.closed() == 1000
