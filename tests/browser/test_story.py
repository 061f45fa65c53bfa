"""The whole of it: one build, started by a command that dies, seen and driven from a desk, a phone and an agent."""

from __future__ import annotations

import asyncio
import subprocess
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import Browser, Page, expect

from tests.support import browser as chrome
from tests.support.agents import Refused, over_http
from tests.support.home import HOLD, HomeForTests, read_all, until
from tests.support.operators import acting_as
from tests.support.web import token

expect.set_options(timeout=chrome.PATIENCE_MS)
BUILD = """n=0; echo "stage 0: begun"
while read -r line; do n=$((n+1)); echo "stage $n: $line"; [ "$line" = finish ] && break; done; echo 'build done'"""


def _by_mcp(url: str, secret: str, text: str) -> str | None:
    """An agent that comes, types a line, and goes; why it was refused. In a thread: this one belongs to the browser."""

    async def come() -> str | None:
        async with over_http(url, secret) as tools:
            try:
                await tools("send", session="build", text=text, enter=True, why="next stage")
            except Refused as e:
                return str(e.code)
        return None

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(come())).result(90)


def _types(page: Page, text: str) -> None:
    page.get_by_label("Text to type").fill(text)
    page.get_by_role("button", name="Send").click()


def test_one_build_many_hands_and_not_a_byte_lost(hold: HomeForTests, url: str, chromium: Browser, phone: Page) -> None:
    starter = subprocess.Popen(
        [*HOLD, "run", "-n", "build", "--", "bash", "-c", BUILD],
        env=hold.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    until(lambda: any(s["name"] == "build" for s in hold.host.call("ls")), 60)
    session = hold.host.session("build")
    assert session.wait(text="begun", timeout=60).event != "timeout"
    starter.kill()
    starter.communicate(timeout=60)
    about = session.status()
    pid, id = about.pid, about.id

    at_desk = chrome.context(chromium)
    desk = chrome.logged_in(hold, at_desk, f"/sessions/{id}")
    chrome.shows(desk, "stage 0: begun")
    at_desk.close()

    phone.goto(f"{url}/sessions/{id}")
    chrome.shows(phone, "stage 0: begun")
    assert session.status().pid == pid
    secret = token(hold, "remote")
    hold.host.grant("remote", verbs=["view", "type", "request_control"], sessions=["build"])
    assert _by_mcp(url, secret, "compile") is None
    chrome.shows(phone, "stage 1: compile")

    with acting_as(hold, "remote") as agent:
        agent.session("build").take(why="I will do the rest")
        expect(phone.get_by_text("remote agent holds the controls")).to_be_visible()
        phone.get_by_role("button", name="Take over").click()
        expect(phone.get_by_text("You hold the controls")).to_be_visible()
    assert _by_mcp(url, secret, "too late") == "conflict"
    _types(phone, "test")
    chrome.shows(phone, "stage 2: test")
    assert session.status().pid == pid
    _types(phone, "finish")
    chrome.shows(phone, "build done")
    expect(phone.get_by_text("This session has ended")).to_be_visible()
    ended = session.status()
    assert ended.exit is not None
    assert (ended.exit.code, ended.generation) == (0, 1)
    typed = "".join(f"{word}\r\nstage {n}: {word}\r\n" for n, word in enumerate(("compile", "test", "finish"), 1))
    printed = f"stage 0: begun\r\n{typed}build done\r\n"
    assert read_all(session).decode() == printed
    assert chrome.screen(phone).split("\n") == printed.split("\r\n")[:-1]
