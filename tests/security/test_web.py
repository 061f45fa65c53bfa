"""The HTTP port against those who should not be there."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from pathlib import Path

import httpx2
import pytest

from holdfast.model.limits import WEB_BODY_BYTES_MAX
from tests.support.agents import ERAS, over_http
from tests.support.home import HomeForTests, until
from tests.support.operators import enrol
from tests.support.web import ACCEPT, INITIALIZE, request, serve, token


def test_only_the_ports_own_names_are_answered(hold: HomeForTests) -> None:
    url = serve(hold)
    secret, port = token(hold, "remote"), url.rpartition(":")[2]
    for name in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}"):
        assert request(url, token=secret, body=INITIALIZE, Host=name)[0] == 200
    for name in (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1:{port}.evil.example",
        f"127.0.0.1.evil:{port}",
        "127.0.0.1",
        "localhost",
        f"127.0.0.1:{int(port) + 1}",
        f"0.0.0.0:{port}",
        "",
        f"127.0.0.1:{port}, x",
    ):
        for path in ("/mcp", "/healthz", "/nothing"):
            status, said = request(url, path, token=secret, body=INITIALIZE, Host=name)
            assert status in (400, 421), name
            assert "sessionId" not in str(said)


def test_pages_of_other_sites_may_not_ask(hold: HomeForTests) -> None:
    url = serve(hold)
    secret = token(hold, "remote")
    assert request(url, token=secret, body=INITIALIZE, Origin=url)[0] == 200
    for origin in (
        "http://evil.example",
        "null",
        url + ".evil.example",
        url + "/",
        url.replace("http:", "https:"),
        "http://localhost",
        "http://127.0.0.1",
        url.upper(),
        f"{url} http://evil.example",
    ):
        for path in ("/mcp", "/healthz"):
            assert request(url, path, token=secret, body=INITIALIZE, Origin=origin)[0] == 403, origin


def test_every_path_that_tells_something_needs_a_valid_token(hold: HomeForTests) -> None:
    url = serve(hold)
    secret = token(hold, "remote")
    assert request(url, "/healthz", method="GET") == (200, {"ok": True})
    for path in ("/mcp", "/api", "/api/sessions", "/mcp/", f"/mcp?token={secret}", f"/mcp?access_token={secret}"):
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            assert request(url, path, method=method, body=INITIALIZE)[0] == 401, (method, path)
    for wrong in (secret[:-1], secret + "x", secret.upper(), "hft_", "x" * 4096, ""):
        assert request(url, token=wrong, body=INITIALIZE)[0] == 401
    for header in (secret, f"Basic {secret}", f"Bearer{secret}", f"Bearer  {secret} {secret}"):
        assert request(url, body=INITIALIZE, Authorization=header)[0] == 401
    status, said = request(url, "/mcp", body=INITIALIZE)
    assert status == 401
    assert isinstance(said, dict)
    assert said["error"]["code"] == "not_allowed"


def test_a_token_ends_by_hand_by_time_and_with_its_operator(hold: HomeForTests) -> None:
    url = serve(hold)
    first, second = token(hold, "one"), token(hold, "one")
    other, brief = token(hold, "two"), token(hold, "three", "--ttl", "1ms")
    assert request(url, token=first, body=INITIALIZE)[0] == 200
    assert request(url, token=second, body=INITIALIZE)[0] == 200
    until(lambda: request(url, token=brief, body=INITIALIZE)[0] == 401)
    assert hold("mcp", "token", "one", "--end").code == 0
    assert request(url, token=first, body=INITIALIZE)[0] == 401
    assert request(url, token=second, body=INITIALIZE)[0] == 401
    assert request(url, token=other, body=INITIALIZE)[0] == 200
    assert hold("operator", "revoke", "two").code == 0
    assert request(url, token=other, body=INITIALIZE)[0] == 401
    hold.kill_daemon()
    for ended in (first, other, brief):
        assert request(url, token=ended, body=INITIALIZE)[0] == 401, "also after the daemon came back"


def test_a_token_is_an_agents_and_only_its_hash_is_kept(hold: HomeForTests, tmp_path: Path) -> None:
    url = serve(hold)
    secret = token(hold, "remote")
    assert request(url, token=secret, body=INITIALIZE)[0] == 200
    assert request(url, f"/mcp?token={secret}", body=INITIALIZE)[0] == 401
    hold.host.timeline()  # written down by now
    kept = [p for p in hold.path.rglob("*") if p.is_file() and secret.encode() in p.read_bytes()]
    assert kept == []
    assert hold("mcp", "token", str(hold.host.whoami()["name"])).code == 4, "a person has none"
    enrol(hold, "helper")
    assert hold("mcp", "token", "other", HOLDFAST_OPERATOR="helper").code == 4, "an agent makes none"
    assert hold("up", "--web", "0", HOLDFAST_OPERATOR="helper").code == 4, "and opens no port"


@pytest.mark.parametrize("era", ERAS)
async def test_revoking_an_operator_cuts_its_open_streams(hold: HomeForTests, era: str) -> None:
    url = serve(hold)
    secret = token(hold, "remote")
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {secret}"}, timeout=60) as http:
        if era == "legacy":
            opened = await http.post(f"{url}/mcp", json=INITIALIZE, headers=ACCEPT)
            about = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "Accept": "text/event-stream"}
            stream = http.stream("GET", f"{url}/mcp", headers=about)
        else:
            meta = {"io.modelcontextprotocol/protocolVersion": era, "io.modelcontextprotocol/clientCapabilities": {}}
            listen = {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "subscriptions/listen",
                "params": {"notifications": {"resourcesListChanged": True}, "_meta": meta},
            }
            about = {**ACCEPT, "Mcp-Protocol-Version": era, "Mcp-Method": "subscriptions/listen"}
            stream = http.stream("POST", f"{url}/mcp", json=listen, headers=about)
        async with stream as answer:
            assert answer.status_code == 200
            await asyncio.to_thread(hold.host.revoke, "remote")
            with contextlib.suppress(httpx2.HTTPError):  # cut off in the middle, or ended: both are an end
                async with asyncio.timeout(60):
                    async for _ in answer.aiter_bytes():
                        pass


async def test_a_session_of_one_agent_is_not_another_agents(hold: HomeForTests) -> None:
    url = serve(hold)
    mine, theirs = token(hold, "one"), token(hold, "two")
    async with over_http(url, mine) as tools:
        await tools("status")
    async with httpx2.AsyncClient(timeout=60) as http:
        opened = await http.post(f"{url}/mcp", json=INITIALIZE, headers={**ACCEPT, "Authorization": f"Bearer {mine}"})
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        stolen = await http.post(
            f"{url}/mcp", json=ask, headers={**ACCEPT, **session, "Authorization": f"Bearer {theirs}"}
        )
        assert stolen.status_code == 404
        own = await http.post(f"{url}/mcp", json=ask, headers={**ACCEPT, **session, "Authorization": f"Bearer {mine}"})
        assert own.status_code == 200


def test_garbage_and_giants_are_refused_and_the_port_goes_on(hold: HomeForTests) -> None:
    url = serve(hold)
    secret = token(hold, "remote")
    for body in (b"{garbage", b"", b"[]", b"null", b"\xff\xfe\x00", b'{"jsonrpc": "2.0"}', b"[" * 100_000):
        status, _ = request(url, token=secret, body=body)
        assert 400 <= status < 500, body[:20]
    assert request(url, token=secret, body=b"x" * (WEB_BODY_BYTES_MAX + 1))[0] == 413
    huge = {"Content-Length": str(1 << 40)}
    assert request(url, token=secret, body=b"{}", **huge)[0] == 413
    with contextlib.suppress(ConnectionError):  # hung up on while it still talks
        assert request(url, token=secret, body=INITIALIZE, **{"X-Long": "x" * 200_000})[0] in (400, 431)
    assert request(url, token=secret, body=INITIALIZE)[0] == 200


def test_whoever_connects_and_does_not_ask_is_hung_up_on(hold: HomeForTests) -> None:
    url = serve(hold)
    secret, address = token(hold, "remote"), ("127.0.0.1", int(url.rpartition(":")[2]))
    asked = f"GET /healthz HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(4)]
        lines[1].sendall(b"POST /mcp HTTP/1.1\r\n")
        lines[2].sendall(asked + b"GET ")  # the second request on a connection gets no more time than the first
        lines[3].sendall(asked[:-2])
        dripping = threading.Event()
        drip = threading.Thread(target=_drip, args=(lines[3], dripping))
        drip.start()
        try:
            for line in lines:
                while line.recv(4096):
                    pass
        except ConnectionError:
            pass  # hung up on while it still talked
        finally:
            dripping.set()
            drip.join()
    assert request(url, token=secret, body=INITIALIZE)[0] == 200


def _drip(line: socket.socket, over: threading.Event) -> None:
    """A header that never ends: a byte now and then does not buy more time."""
    with contextlib.suppress(OSError):
        while not over.wait(0.2):
            line.sendall(b"x")
