"""Browsers of several people: each with its person's rights, ended with them; links that are noted; another address."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from holdfast.model.limits import LIVE_MAX
from holdfast.system import signing_keys
from tests.support import qr
from tests.support.console import PATIENCE_S, Browser
from tests.support.home import HomeForTests
from tests.support.operators import acting_as, enrol, journal
from tests.support.web import request, serve, token


@pytest.fixture
def browser(hold: HomeForTests) -> Iterator[Browser]:
    made = Browser(hold, serve(hold))
    yield made
    made.close()


@contextlib.contextmanager
def _comes(url: str, secret: str) -> Iterator[httpx.Client]:
    """A browser that opens a link."""
    with httpx.Client(base_url=url, headers={"Origin": url}, timeout=PATIENCE_S) as client:
        done = client.post("/api/login", json={"token": secret})
        assert done.status_code == 204, done.text
        yield client


def test_a_browser_may_what_its_person_may_and_ends_with_them(hold: HomeForTests, browser: Browser) -> None:
    for name in ("build", "private"):
        hold.run("sleep", "600", name=name)
    enrol(hold, "anna", "human", verbs=["view"], sessions=["build"])
    made = browser.post("/api/links", status=201, operator="anna", why="her phone")
    assert made["operator"] == "anna"
    assert browser.url in made["addresses"]
    with _comes(browser.url, made["token"]) as anna:
        assert anna.get("/api/me").json()["operator"]["name"] == "anna"
        assert [s["name"] for s in anna.get("/api/sessions").json()] == ["build"]
        assert anna.get("/api/sessions/private").status_code in (403, 404)
        assert anna.post("/api/sessions/build/stop", json={}).status_code == 403
        assert anna.post("/api/operators", json={"name": "eve", "kind": "human", "verbs": ["view"]}).status_code == 403
        assert anna.get("/api/sessions/build/touched").json()["folder"] is None, "to see it is not to see its disk"
        whoever = hold.host.whoami()["name"]
        assert anna.post("/api/links", json={"operator": whoever}).status_code == 403, "no wider than who made it"
        own = anna.post("/api/links", json={})
        assert (own.status_code, own.json()["operator"]) == (201, "anna")
        hold.kill_daemon()
        assert anna.get("/api/me").json()["operator"]["name"] == "anna", "also after the daemon came back"
        hold.host.revoke("anna")
        assert anna.get("/api/me").status_code == 401
        assert request(browser.url, "/api/login", body={"token": own.json()["token"]})[0] == 403, "and her links"
    assert browser.get("/api/me")["operator"]["kind"] == "human"
    noted = [
        (e["kind"], e["whom"]["name"], e.get("why"))
        for e in journal(hold, "link", "login")
        if e["whom"]["name"] == "anna"
    ]
    assert noted == [("link", "anna", "her phone"), ("login", "anna", None), ("link", "anna", None)]


async def test_revoking_a_person_closes_their_sockets_at_once_and_each_with_the_same_word(
    hold: HomeForTests, browser: Browser
) -> None:
    hold.run("cat", name="kitten")
    enrol(hold, "anna", "human", verbs=["view"], sessions=["*"])
    made = browser.post("/api/links", status=201, operator="anna")
    with _comes(browser.url, made["token"]) as client:
        browser.http.close()
        browser.http = client
        async with (
            browser.socket("/api/live?all=1") as live,
            browser.socket("/api/sessions/kitten/attach") as terminal,
            browser.socket("/api/sessions/kitten/attach?read_only=1") as another,
        ):
            await live.text("sessions")
            for one in (terminal, another):
                await one.text("controls")
            hold.host.revoke("anna")
            assert [await one.closed() for one in (live, terminal, another)] == [4401, 4401, 4401]


async def test_who_loses_a_right_and_is_still_somebody_is_told_so(hold: HomeForTests, browser: Browser) -> None:
    hold.run("cat", name="kitten")
    given = enrol(hold, "anna", "human", verbs=["view"], sessions=["*"])["grants"][0]
    made = browser.post("/api/links", status=201, operator="anna")
    with _comes(browser.url, made["token"]) as client:
        browser.http.close()
        browser.http = client
        async with (
            browser.socket("/api/live?all=1") as live,
            browser.socket("/api/sessions/kitten/attach") as terminal,
        ):
            await live.text("sessions")
            await terminal.text("controls")
            hold.host.revoke(given["id"])
            assert await terminal.closed() == 4403
            assert (await live.text("gone"))["id"], "the page hears of it, and stays"
        assert client.get("/api/me").status_code == 200


async def test_one_person_cannot_take_up_the_room_of_another(hold: HomeForTests, browser: Browser) -> None:
    enrol(hold, "anna", "human", verbs=["view"], sessions=["*"])
    made = browser.post("/api/links", status=201, operator="anna")

    async def got_in(until: contextlib.AsyncExitStack) -> bool:
        page = await until.enter_async_context(browser.socket("/api/live"))
        with contextlib.suppress(ConnectionClosed):
            await page.text("sessions")
        return page.line.close_code is None

    async with contextlib.AsyncExitStack() as until:
        for _ in range(LIVE_MAX // 2):
            assert await got_in(until)
        assert not await got_in(until), "one person has half of it"
        with _comes(browser.url, made["token"]) as client:
            browser.http.close()
            browser.http = client
            assert await got_in(until)


def test_agents_make_no_links_and_nobody_in_a_shared_terminal_does(hold: HomeForTests, browser: Browser) -> None:
    bot = {"Authorization": f"Bearer {token(hold, 'bot')}"}
    assert httpx.post(f"{browser.url}/api/links", json={}, headers=bot, timeout=PATIENCE_S).status_code == 403
    shell = hold.run("bash", "--norc", "--noprofile", "-i", name="shared", env={"PS1": "$ "})
    hold.host.grant("bot", ["view", "type", "request_control"], sessions=["shared"])
    with acting_as(hold, "bot") as agent:
        agent.session("shared").send("true", enter=True)  # from now on its hands were on it
    found = shell.exec(f"{sys.executable} -m holdfast.cli.main web link; echo code=$?", timeout=60)
    assert "code=4" in found.output
    assert "#login=" not in found.output


def test_a_person_whose_key_is_elsewhere_gets_no_browser_here(hold: HomeForTests, browser: Browser) -> None:
    public = signing_keys.make(str(hold.path / "elsewhere"), "op_far")
    hold.host.add_operator("far", "human", verbs=["view"], sessions=["*"], key=public)
    done = browser.http.post("/api/links", json={"operator": "far"})
    assert (done.status_code, done.json()["error"]["code"]) == (422, "failed")


def test_another_address_is_answered_to_where_it_was_named_and_only_there(hold: HomeForTests) -> None:
    name, public = "hold.example.org", "https://hold.example.org"
    url = serve(hold)
    assert request(url, "/healthz", method="GET", Host=name)[0] == 421
    port = url.rpartition(":")[2]
    done = hold("up", "--web", port, "--web-url", public, "--json")
    assert done.json["host"]["web"]["link"].startswith(f"{public}/#login=")
    secret = done.json["host"]["web"]["link"].partition("#login=")[2]
    assert request(url, "/healthz", method="GET", Host=name)[0] == 200
    assert request(url, "/healthz", method="GET", Host=name, Origin="http://hold.example.org")[0] == 403
    came = httpx.post(
        f"{url}/api/login", json={"token": secret}, headers={"Host": name, "Origin": public}, timeout=PATIENCE_S
    )
    assert came.status_code == 204
    assert "Secure" in came.headers["set-cookie"]
    assert hold("web", "link").out.startswith(public)
    hold.kill_daemon()
    assert request(url, "/healthz", method="GET", Host=name)[0] == 200, "it is kept"
    hold("up", "--web", port)
    assert request(url, "/healthz", method="GET", Host=name)[0] == 421


def test_a_link_is_drawn_in_the_terminal_and_says_where_it_reaches(hold: HomeForTests) -> None:
    serve(hold)
    done = hold("web", "link", "--qr")
    *picture, link = done.out.splitlines()
    assert qr.read(qr.from_terminal("\n".join(picture), coloured=False)) == link
    assert "this address is reachable from this machine only" in done.err
    for words in (
        ("--web-url", "https://x"),
        ("--web", "0", "--web-url", "nonsense"),
        ("--web", "off", "--web-url", "https://x"),
    ):
        assert hold("up", *words).code == 2
