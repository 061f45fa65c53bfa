"""Answering from a phone: a prompt, a secret, a question, an approval."""

from __future__ import annotations

import hashlib
import json
import subprocess

import pytest
from playwright.sync_api import Page, Request, WebSocket, expect

from holdfast.model.errors import HoldfastError
from tests.support import browser as chrome
from tests.support.home import HomeForTests
from tests.support.operators import acting_as, enrol

expect.set_options(timeout=chrome.PATIENCE_MS)
SECRET = "correct-horse-battery-9Z"


class Wire:
    """Everything that a page sends and hears."""

    def __init__(self, page: Page) -> None:
        self.requests: list[tuple[str, str]] = []
        self.frames: list[str] = []
        page.on("request", self._request)
        page.on("websocket", self._socket)

    def _request(self, request: Request) -> None:
        self.requests.append((request.url, request.post_data or ""))

    def _socket(self, socket: WebSocket) -> None:
        for event in ("framesent", "framereceived"):
            socket.on(event, lambda data: self.frames.append(data if isinstance(data, str) else data.decode("latin-1")))


def test_a_prompt_is_answered_from_a_phone_and_the_program_goes_on(hold: HomeForTests, url: str, phone: Page) -> None:
    expect(phone).to_have_url(url + "/inbox")  # home, in the hand
    session = hold.run(
        "bash", "-c", "echo 3 to change; read -r -p 'Deploy? [y/N] ' a; echo \"said $a\"; sleep 600", name="deploy"
    )
    pid = session.status().pid
    card = phone.get_by_role("article", name="deploy waits for a line")
    expect(card).to_contain_text("Deploy? [y/N]")
    expect(card).to_contain_text("3 to change")
    card.get_by_label("Reply to deploy").fill("y")
    card.get_by_role("button", name="Reply").click()
    expect(card).to_have_count(0)
    assert session.wait(text="said y", timeout=60).event != "timeout"
    assert session.status().pid == pid


def test_a_secret_is_nowhere_but_in_its_own_request(hold: HomeForTests, url: str, phone: Page) -> None:
    wire = Wire(phone)
    phone.reload()
    told: list[str] = []
    phone.on("console", lambda message: told.append(message.text))
    session = hold.run(
        "bash", "-c", "read -r -s -p 'Password: ' p; echo; printf %s \"$p\" | sha256sum; sleep 600", name="vault"
    )
    card = phone.get_by_role("article", name="vault waits for a secret")
    field = card.get_by_label("Secret for vault")
    expect(field).to_have_attribute("type", "password")
    field.fill(SECRET)
    card.get_by_role("button", name="Reply").click()
    expect(card).to_have_count(0)
    digest = hashlib.sha256(SECRET.encode()).hexdigest()
    assert session.wait(text=digest, timeout=60).event != "timeout"
    phone.goto(f"{url}/sessions/{session.id}")
    chrome.shows(phone, digest[:20])
    carriers = [where for where, body in wire.requests if SECRET in body or SECRET in where]
    assert len(carriers) == 1
    assert carriers[0].endswith("/answer")
    assert not any(SECRET in frame for frame in wire.frames)
    assert SECRET not in phone.content()
    values = phone.evaluate("[...document.querySelectorAll('input')].map((i) => i.value).join()")
    assert SECRET not in values
    kept = phone.evaluate("JSON.stringify([localStorage, sessionStorage])")
    assert SECRET not in kept
    assert not any(SECRET in line for line in told)
    assert SECRET not in json.dumps(hold.host.timeline())
    hold.kill_daemon()  # everything it had in mind is on disk
    found = subprocess.run(["grep", "-rla", SECRET, str(hold.path)], capture_output=True, check=False)
    assert found.stdout == b""


def test_a_secret_is_typed_through_a_password_field_in_the_session_too(
    hold: HomeForTests, url: str, phone: Page
) -> None:
    session = hold.run(
        "bash", "-c", "read -r -s -p 'Password: ' p; echo; echo \"${#p} letters\"; sleep 600", name="vault"
    )
    phone.goto(f"{url}/sessions/{session.id}")
    chrome.attached(phone)
    field = phone.get_by_label("Secret to type")
    expect(field).to_have_attribute("type", "password")
    field.fill(SECRET)
    phone.get_by_role("button", name="Send").click()
    chrome.shows(phone, f"{len(SECRET)} letters")
    expect(phone.get_by_label("Text to type")).to_have_value("")


def test_keys_that_glass_lacks_are_in_a_bar(hold: HomeForTests, url: str, phone: Page) -> None:
    session = hold.run("bash", "--norc", "--noprofile", "-i", name="shell", env={"PS1": "$ "})
    phone.goto(f"{url}/sessions/{session.id}")
    chrome.shows(phone, "$")
    phone.get_by_label("Text to type").fill("echo one; cat")
    phone.get_by_role("button", name="Send").click()
    chrome.shows(phone, "\none")
    phone.get_by_role("button", name="Control C").click()
    chrome.shows(phone, "^C")
    phone.get_by_role("button", name="Up", exact=True).click()
    phone.get_by_role("button", name="Enter", exact=True).click()
    assert session.wait(text="one\r\n(?s:.*)one\r\n", start=0, timeout=60).event != "timeout"


def test_questions_and_requests_are_answered_with_buttons(hold: HomeForTests, phone: Page) -> None:
    enrol(hold, "claude", sessions=["*"])
    with acting_as(hold, "claude") as agent:
        asked = agent.ask("Which branch?", options=["main", "develop"])
        card = phone.get_by_role("article", name="claude asks")
        card.get_by_role("button", name="develop").click()
        assert agent.asked(asked.id, timeout=60).answer == "develop"
        session = hold.run("sleep", "600", name="mine")
        session.take()
        with pytest.raises(HoldfastError, match="controls"):
            agent.session("mine").take(why="the tests are mine to fix")
        card = phone.get_by_role("article", name="claude wants the controls")
        expect(card).to_contain_text("the tests are mine to fix")
        card.get_by_role("button", name="Approve").click()
        expect(card).to_have_count(0)
        assert session.status().controls.name == "claude"
