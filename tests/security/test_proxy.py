"""The console behind a real reverse proxy: logging in, sockets and who may ask are as they are without one."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from tests.support.console import CLOSE_S, PATIENCE_S, Socket
from tests.support.home import HomeForTests
from tests.support.nginx import NAME, Nginx
from tests.support.web import request, serve

Json = dict[str, Any]


class Proxied:
    """A browser whose way leads through the proxy."""

    def __init__(self, hold: HomeForTests, nginx: Nginx, direct: str) -> None:
        self.nginx, self.url, self.direct, self.cookie = nginx, nginx.url, direct, ""
        port = direct.rpartition(":")[2]
        done = hold("up", "--web", port, "--web-url", self.url, "--json")
        assert done.code == 0, done.err
        self.link = str(done.json["host"]["web"]["link"])

    def ask(
        self, method: str, path: str, body: Json | None = None, /, **headers: str
    ) -> tuple[int, http.client.HTTPMessage]:
        sent = {"Host": urlsplit(self.url).netloc, "Origin": self.url, "Cookie": self.cookie, **headers}
        line = socket.create_connection(("127.0.0.1", self.nginx.port), timeout=PATIENCE_S)
        connection = http.client.HTTPConnection(NAME, timeout=PATIENCE_S)
        connection.sock = self.nginx.trusted().wrap_socket(line, server_hostname=NAME)
        with contextlib.closing(connection):
            connection.request(
                method, path, None if body is None else json.dumps(body), {k: v for k, v in sent.items() if v}
            )
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers

    def log_in(self) -> str:
        """By the link that was printed; what the browser is told to keep."""
        status, headers = self.ask("POST", "/api/login", {"token": self.link.partition("#login=")[2]})
        assert status == 204
        kept = str(headers["set-cookie"])
        self.cookie = kept.partition(";")[0]
        return kept

    @contextlib.asynccontextmanager
    async def socket(self, path: str, origin: str | None) -> AsyncIterator[Socket]:
        async with connect(
            f"wss://{NAME}:{self.nginx.port}{path}",
            host="127.0.0.1",
            port=self.nginx.port,
            ssl=self.nginx.trusted(),
            server_hostname=NAME,
            origin=Origin(origin) if origin else None,
            additional_headers={"Cookie": self.cookie},
            compression=None,
            max_size=8 << 20,
            open_timeout=PATIENCE_S,
            close_timeout=CLOSE_S,
            ping_interval=None,
            proxy=None,
        ) as line:
            yield Socket(line)


@pytest.fixture
def proxied(hold: HomeForTests, tmp_path: Path) -> Iterator[Proxied]:
    direct = serve(hold)
    nginx = Nginx(tmp_path / "nginx", urlsplit(direct).netloc)
    try:
        yield Proxied(hold, nginx, direct)
    finally:
        nginx.close()


def test_a_link_through_the_proxy_logs_a_browser_in_with_a_cookie_for_tls_alone(proxied: Proxied) -> None:
    assert proxied.link.startswith(f"{proxied.url}/#login=")
    assert proxied.ask("GET", "/api/me")[0] == 401
    kept = proxied.log_in()
    assert {"Secure", "HttpOnly", "SameSite=Strict"} <= {word.strip() for word in kept.split(";")}
    assert proxied.ask("GET", "/api/me")[0] == 200
    assert proxied.ask("GET", "/")[0] == 200
    assert proxied.ask("POST", "/api/logout", {})[0] == 204
    assert proxied.ask("GET", "/api/me")[0] == 401


async def test_a_terminal_works_through_the_proxy_and_its_end_is_told_as_it_is(
    hold: HomeForTests, proxied: Proxied
) -> None:
    hold.run("cat", name="kitten")
    proxied.log_in()
    async with (
        proxied.socket("/api/sessions/kitten/attach?client=c1&cols=90&rows=30", proxied.url) as terminal,
        proxied.socket("/api/live?all=1", proxied.url) as live,
    ):
        await terminal.text("controls")
        await live.text("sessions")
        await terminal.type(b"through the proxy\r")
        await terminal.sees(b"through the proxy\r\nthrough the proxy")
        assert proxied.ask("POST", "/api/logout", {})[0] == 204
        assert [await one.closed() for one in (terminal, live)] == [4401, 4401]


async def test_pages_of_other_sites_may_not_ask_through_the_proxy_either(proxied: Proxied) -> None:
    proxied.log_in()
    name = urlsplit(proxied.url).netloc
    for origin in ("https://evil.test", f"http://{name}", f"https://{NAME}", "null"):
        assert proxied.ask("GET", "/api/me", Origin=origin)[0] == 403, origin
        assert proxied.ask("POST", "/api/links", {}, Origin=origin)[0] == 403, origin
        with pytest.raises(InvalidStatus):
            async with proxied.socket("/api/live", origin):
                pass
    with pytest.raises(InvalidStatus):  # a browser always says it
        async with proxied.socket("/api/live", None):
            pass
    assert proxied.ask("GET", "/api/me", **{"Sec-Fetch-Site": "same-site"})[0] == 403
    async with proxied.socket("/api/live", proxied.url) as live:
        await live.text("sessions")


def test_what_a_proxy_is_called_by_is_what_counts_not_what_it_says_it_forwards(proxied: Proxied) -> None:
    proxied.log_in()
    assert proxied.ask("GET", "/api/me", Host="evil.test")[0] == 421
    forged = {"X-Forwarded-Host": "evil.test", "X-Forwarded-For": "10.0.0.1", "X-Forwarded-Proto": "http"}
    assert proxied.ask("GET", "/api/me", **forged)[0] == 200
    forwarded: Any = {"X-Forwarded-Host": urlsplit(proxied.url).netloc}
    assert request(proxied.direct, "/healthz", method="GET", Host="evil.test", **forwarded)[0] == 421
