"""The console against those who should not be there: pages of other sites, used links, strangers on sockets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from holdfast.model.limits import WEB_BODY_BYTES_MAX
from tests.support.console import PATIENCE_S, Browser, Socket, link, opened
from tests.support.home import HomeForTests, until
from tests.support.operators import enrol
from tests.support.web import request, serve, token

Json = dict[str, Any]


@pytest.fixture
def browser(hold: HomeForTests) -> Iterator[Browser]:
    made = Browser(hold, serve(hold))
    yield made
    made.close()


def asked(url: str, path: str, method: str = "GET", body: Json | bytes | None = None, /, **headers: str) -> int:
    """The status of one request, exactly as said."""
    return request(url, path, method=method, body=body, **headers)[0]


# -- coming in


def test_a_link_works_once(hold: HomeForTests) -> None:
    url = serve(hold)
    given = link(hold)
    assert given["link"].startswith(f"{url}/#login=")
    assert asked(url, "/api/login", "POST", {"token": given["token"]}) == 204
    for _ in range(2):
        assert asked(url, "/api/login", "POST", {"token": given["token"]}) == 403
    hold.kill_daemon()
    assert asked(url, "/api/login", "POST", {"token": given["token"]}) == 403, "also after the daemon came back"


def test_a_link_that_is_wrong_lets_nobody_in(hold: HomeForTests) -> None:
    url = serve(hold)
    real = link(hold)["token"]
    for wrong in ("", "x", real[:-1], real + "x", real.swapcase(), "x" * 129, token(hold, "remote")):
        assert asked(url, "/api/login", "POST", {"token": wrong}) in (400, 403), wrong
    for body in (b"", b"null", b"[]", b'"x"', b"{garbage", b'{"token": 1}', b'{"token": "x", "more": 1}', b"\xff"):
        assert asked(url, "/api/login", "POST", body) in (400, 403), body
    assert asked(url, "/api/login", "GET") in (404, 405)
    assert asked(url, "/api/login", "POST", {"token": real}, Origin="http://evil.example") == 403
    assert asked(url, "/api/login", "POST", {"token": real}, Host="evil.example") == 421
    assert asked(url, "/api/login", "POST", {"token": real}) == 204, "and the right one is still good"


def test_only_people_let_browsers_in_and_only_their_own(hold: HomeForTests) -> None:
    serve(hold)
    enrol(hold, "helper")
    assert hold("web", "link", HOLDFAST_OPERATOR="helper").code == 4
    assert hold("web", "logout", HOLDFAST_OPERATOR="helper").code == 4
    hold.host.add_operator("colleague", "human", verbs=["view", "enrol"], sessions=["*"])
    owner = hold.host.whoami()["name"]
    for whom in (owner, "helper"):
        assert hold("web", "link", "--for", whom, HOLDFAST_OPERATOR="colleague").code == 4
    assert hold("web", "link", "--for", "helper").code == 4, "an agent has no browser"
    assert hold("web", "link", HOLDFAST_OPERATOR="colleague").code == 0


def test_the_cookie_is_kept_from_scripts_and_other_sites_and_only_its_hash_is_stored(hold: HomeForTests) -> None:
    url = serve(hold)
    given = link(hold)["token"]
    done = httpx.post(f"{url}/api/login", json={"token": given}, timeout=PATIENCE_S)
    words = {word.strip().lower() for word in done.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= words
    secret = done.headers["set-cookie"].partition("=")[2].partition(";")[0]
    assert len(secret) >= 43, "256 bits"
    assert asked(url, "/api/me", Cookie=f"holdfast-{url.rpartition(':')[2]}={secret}") == 200
    hold.host.timeline()  # written down by now
    kept = [
        p for p in hold.path.rglob("*") if p.is_file() and any(s.encode() in p.read_bytes() for s in (secret, given))
    ]
    assert kept == []


def test_a_cookie_stands_for_nobody_at_mcp_or_in_a_url(hold: HomeForTests, browser: Browser) -> None:
    name, _, value = browser.cookie.partition("=")
    assert asked(browser.url, "/mcp", "POST", {}, Cookie=browser.cookie, Origin=browser.url) == 401
    for path in (f"/api/me?{browser.cookie}", f"/api/me?token={value}", f"/api/me?access_token={value}"):
        assert asked(browser.url, path) == 401
    for wrong in (value[:-1], value + "x", "", "x" * 5000):
        assert asked(browser.url, "/api/me", Cookie=f"{name}={wrong}") == 401
    assert asked(browser.url, "/api/me", Cookie=f"{name}=forged; {browser.cookie}") == 200, "nobody can hide it"


async def test_logging_out_ends_the_cookie_and_its_sockets(hold: HomeForTests, browser: Browser) -> None:
    hold.run("cat", name="kitten")
    other = Browser(hold, browser.url)
    async with (
        browser.socket("/api/sessions/kitten/attach") as terminal,
        browser.socket("/api/live") as live,
        other.socket("/api/live") as theirs,
    ):
        await terminal.text("controls")
        await live.text("sessions")
        await theirs.text("sessions")
        cookie = browser.cookie
        browser.post("/api/logout", status=204)
        assert await terminal.closed() == 4401
        assert await live.closed() == 4401
        assert asked(browser.url, "/api/me", Cookie=cookie) == 401
        assert other.get("/api/me"), "another browser is still in"
        assert hold("web", "logout").code == 0
        assert await theirs.closed() == 4401
    assert asked(browser.url, "/api/me", Cookie=other.cookie) == 401
    other.close()


def test_all_browsers_are_out_also_after_the_daemon_came_back(hold: HomeForTests, browser: Browser) -> None:
    hold.kill_daemon()
    assert browser.get("/api/me"), "a dead daemon logs nobody out"
    waiting = link(hold)["token"]
    ended = hold("web", "logout", "--json").json["ended"]
    assert ended == 3, "the browser, this link, and the one that hold up printed"
    hold.kill_daemon()
    assert asked(browser.url, "/api/me", Cookie=browser.cookie) == 401
    assert asked(browser.url, "/api/login", "POST", {"token": waiting}) == 403


# -- pages of other sites


def test_a_cookie_changes_nothing_for_a_page_of_another_site(hold: HomeForTests, browser: Browser) -> None:
    url, cookie = browser.url, browser.cookie
    port = url.rpartition(":")[2]
    body = {"command": ["true"]}
    assert asked(url, "/api/sessions", "POST", body, Cookie=cookie) == 403, "a browser always says where it comes from"
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{int(port) + 1}", url + "/", "http://localhost"):
        assert asked(url, "/api/sessions", "POST", body, Cookie=cookie, Origin=origin) == 403, origin
        assert asked(url, "/api/sessions", "GET", Cookie=cookie, Origin=origin) == 403, origin
    for site in ("cross-site", "same-site", "garbage", ""):
        headers = {"Cookie": cookie, "Sec-Fetch-Site": site}
        assert asked(url, "/api/sessions", "GET", **headers) == 403, site
        assert asked(url, "/api/sessions", "POST", body, Origin=url, **headers) == 403, site
    for method in ("POST", "DELETE"):
        for path in ("/api/sessions/x/stop", "/api/sessions/x", "/api/logout", "/api/operators"):
            assert asked(url, path, method, {}, Cookie=cookie) == 403, path
    assert hold.host.call("ls", all=True) == []
    assert asked(url, "/api/sessions", "GET", Cookie=cookie, **{"Sec-Fetch-Site": "none"}) == 200
    assert asked(url, "/api/sessions", "POST", body, Cookie=cookie, **{"Sec-Fetch-Site": "same-origin"}) == 201


async def test_a_socket_opens_only_for_our_own_page_or_a_token(hold: HomeForTests, browser: Browser) -> None:
    hold.run("cat", name="kitten")
    url = browser.url
    for path in ("/api/live", "/api/sessions/kitten/attach"):
        refused: list[dict[str, str]] = [
            {},
            {"Origin": url},
            {"Cookie": browser.cookie},
            {"Cookie": browser.cookie, "Origin": "http://evil.example"},
            {"Cookie": browser.cookie, "Origin": "null"},
            {"Cookie": "holdfast=x", "Origin": url},
            {"Cookie": browser.cookie, "Origin": url, "Sec-Fetch-Site": "same-site"},
            {"Authorization": "Bearer hft_nothing"},
            {"Cookie": browser.cookie, "Origin": url, "Authorization": "Bearer hft_nothing"},
        ]
        for headers in refused:
            with pytest.raises(InvalidStatus):
                async with opened(url, path, dict(headers)):
                    pass
    with pytest.raises(InvalidStatus):
        async with opened(url, "/anything", {"Cookie": browser.cookie, "Origin": url}):
            pass
    async with opened(url, "/api/live", {"Authorization": f"Bearer {token(hold, 'remote')}"}) as line:
        assert (await Socket(line).text("sessions"))["sessions"] == [], "an agent sees its own"


# -- files


def test_only_the_pages_own_files_are_served(hold: HomeForTests) -> None:
    url = serve(hold)
    secret = hold.path / "secret.txt"
    secret.write_text("do not show")
    for path in (
        "/../../secret.txt",
        "/..%2f..%2fsecret.txt",
        "/%2e%2e/%2e%2e/app.py",
        "/assets/../../app.py",
        "/assets/%2e%2e/%2e%2e/app.py",
        "//etc/passwd",
        "/%2fetc/passwd",
        "/assets/..%5c..%5capp.py",
        "/.sources",
        "/assets/.hidden",
        "/%00",
        "/index.html%00.txt",
        "/assets/%ff",
        "/assets//etc/passwd",
        f"/{secret}",
        "/assets/" + "x" * 4000,
    ):
        status, said = request(url, path, method="GET")
        assert status in (200, 400, 404), path
        assert "do not show" not in str(said), path
        assert "root:" not in str(said), path
        assert "import annotations" not in str(said), path


def test_a_page_is_kept_in_its_place(hold: HomeForTests, browser: Browser) -> None:
    for path in ("/", "/sessions/anything", "/api/me", "/api/nothing"):
        headers = browser.http.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "no-referrer", path
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'", path
        assert policy.get("script-src", "'self'") == "'self'", path
        assert "access-control-allow-origin" not in headers
    policy_text = browser.http.get("/").headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy_text
    assert "base-uri 'none'" in policy_text
    assert "unsafe-eval" not in policy_text
    assert browser.http.get("/api/me").headers["cache-control"] == "no-store"


# -- garbage and giants


def test_garbage_and_giants_are_refused_in_one_form(hold: HomeForTests, browser: Browser) -> None:
    def post(path: str, body: bytes) -> httpx.Response:
        return browser.http.post(path, content=body)

    for body in (
        b"{garbage",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"command": "ls"}',
        b'{"nothing": 1}',
        b'{"command": [1]}',
        b'{"command": ["a\\u0000b"]}',
        b'{"name": ""}',
        b'{"name": "../x"}',
        b'{"cwd": "/nowhere/at/all", "command": ["true"]}',
        b'{"cols": 0, "rows": 0}',
    ):
        done = post("/api/sessions", body)
        assert 400 <= done.status_code < 500, body[:40]
        assert set(done.json()["error"]) >= {"code", "message", "hint"}
        assert "Traceback" not in done.text
    assert post("/api/sessions", b"x" * (WEB_BODY_BYTES_MAX + 1)).status_code == 413
    huge = {"Content-Length": str(1 << 40), "Cookie": browser.cookie, "Origin": browser.url}
    assert asked(browser.url, "/api/sessions", "POST", b"{}", **huge) == 413
    for path in (
        "/api/sessions?all=maybe",
        "/api/sessions?nothing=1",
        "/api/sessions?all=1&all=1",
        "/api/sessions/x/timeline?before=-1",
        "/api/away",
        "/api/away?since=never",
        "/api/tasks",
        "/api/runs/run_nothing",
        "/api/sessions/%00",
        "/api/sessions/..%2f..",
        "/api/nothing",
        "/api/report?since=7d&format=exe",
        "/api/inbox/ask_x/answer",
        "/api/sessions/" + "x" * 3000,
    ):
        done = browser.http.get(path)
        assert done.status_code in (400, 404, 405), (path, done.text)
    assert browser.get("/api/sessions") == []
    log = (hold.path / "web.log").read_text() if (hold.path / "web.log").exists() else ""
    assert "Traceback" not in log, log


async def test_nonsense_on_a_socket_closes_that_socket_and_nothing_else(hold: HomeForTests, browser: Browser) -> None:
    session = hold.run("cat", name="kitten")
    path = "/api/sessions/kitten/attach"
    async with browser.socket(path) as good:
        await good.text("controls")
        for nonsense in (
            "",
            "null",
            "{}",
            "[" * 10_000,
            '{"kind": "nothing"}',
            '{"kind": "input"}',
            '{"kind": "input", "seq": 0, "data": ""}',
            '{"kind": "input", "seq": 1, "data": "%%"}',
            '{"kind": "resize", "cols": 0, "rows": 0}',
            '{"kind": "resize", "cols": 99999, "rows": 1}',
            '{"kind": "ack", "offset": -1}',
            '{"kind": "ack", "offset": 1e99}',
            b"\x00\x01",
        ):
            async with browser.socket(path) as bad:
                await bad.text("controls")
                await bad.line.send(nonsense)
                assert await bad.closed() == 1008, nonsense[:40]
        async with browser.socket(path) as bad:
            await bad.text("controls")
            with contextlib.suppress(Exception):
                await bad.line.send("x" * (1 << 20))
            assert await bad.closed() == 1009, "too large"
        for query in (
            "from=-1",
            "from=x",
            "client=a%20b",
            "cols=0&rows=0",
            "cols=x",
            "nothing=1",
            "client=" + "x" * 65,
        ):
            async with browser.socket(f"{path}?{query}") as bad:
                assert await bad.closed() == 1008, query
        async with browser.socket("/api/sessions/nothing/attach") as bad:
            assert (await bad.text("refused"))["error"]["code"] == "not_found"
            assert await bad.closed() == 4404
        await good.type(b"still here\r")
        await good.sees(b"still here\r\nstill here")
    assert session.status().state == "live"


# -- what a token may


async def test_a_token_does_what_its_operator_may_and_no_more(hold: HomeForTests, browser: Browser) -> None:
    secret = token(hold, "helper")
    theirs = {"Authorization": f"Bearer {secret}"}
    url = browser.url
    hold.run("cat", name="mine")
    _, me = request(url, "/api/me", method="GET", token=secret)
    assert isinstance(me, dict)
    assert me["operator"]["name"] == "helper"
    for path in (
        "/api/sessions/mine",
        "/api/sessions/mine/screen",
        "/api/sessions/mine/timeline",
        "/api/sessions/mine/recording",
        "/api/sessions/mine/marks",
        "/api/journal/verify",
    ):
        assert asked(url, path, **theirs) in (403, 404), path
    for path, body in (("take", {}), ("send", {"text": "x"}), ("kill", {}), ("stop", {}), ("rename", {"name": "x"})):
        assert asked(url, f"/api/sessions/mine/{path}", "POST", body, **theirs) in (403, 404), path
    assert asked(url, "/api/operators", "POST", {"name": "more", "kind": "agent"}, **theirs) == 403
    assert asked(url, "/api/operators", "POST", {"name": "me2", "kind": "human"}, **theirs) == 403
    async with opened(url, "/api/sessions/mine/attach", dict(theirs)) as line:
        assert await Socket(line).closed() == 4404
    status, made = request(url, "/api/sessions", token=secret, body={"command": ["cat"], "name": "own"})
    assert status == 201
    assert isinstance(made, dict)
    helper = next(o["id"] for o in hold.host.operators() if o["name"] == "helper")
    assert made["started_by"] == helper
    _, shown = request(url, "/api/sessions", method="GET", token=secret)
    assert [s["name"] for s in cast(list[Json], shown)] == ["own"]
    async with opened(url, "/api/sessions/own/attach", dict(theirs)) as line:
        socket = Socket(line)
        await socket.text("controls")
        hold.host.revoke("helper")
        assert await socket.closed() == 4401
    until(lambda: asked(url, "/api/me", **theirs) == 401, PATIENCE_S)


def test_a_secret_stands_nowhere_but_in_the_request_that_carried_it(
    hold: HomeForTests, browser: Browser, tmp_path: Path
) -> None:
    secret = "correct-horse-battery"
    hold.run("bash", "--norc", "-c", "read -rsp 'Password: ' p; echo; echo got ${#p}; exec cat", name="login")
    item = until(lambda: next((i for i in browser.get("/api/inbox") if i["kind"] == "secret"), None), PATIENCE_S)
    done = browser.post(f"/api/inbox/{item['id']}/answer", secret=secret)
    assert done["state"] == "answered"
    assert secret not in json.dumps(done)
    assert hold.host.session("login").wait(text="got 21", start=0, timeout=60).event == "text"
    seen = [
        browser.http.get(path).text
        for path in (
            "/api/inbox?all=1",
            "/api/sessions/login/timeline",
            "/api/sessions/login/recording",
            "/api/sessions/login/marks",
            "/api/away?since=1h",
            "/api/timeline",
            "/api/sessions?all=1",
        )
    ]
    assert not any(secret in text for text in seen)
    assert [p for p in hold.path.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()] == []
