"""The HTTP port of a test's home: served, addressed, with tokens; raw requests for what no decent client sends."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from tests.support.home import HomeForTests

Json = dict[str, Any]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def serve(hold: HomeForTests) -> str:
    """Serve on a free port; the URL."""
    done = hold("up", "--web", "0", "--json")
    assert done.code == 0, done.err
    return str(done.json["host"]["web"]["url"])


def token(hold: HomeForTests, agent: str, *words: str) -> str:
    done = hold("mcp", "token", agent, *words)
    assert done.code == 0, done.err
    return done.out.strip()


def web_pid(hold: HomeForTests) -> int | None:
    about = hold.host.call("ping")["host"]["web"]
    return None if about is None else about["pid"]


def request(
    url: str,
    path: str = "/mcp",
    *,
    token: str | None = None,
    body: bytes | Json | None = None,
    method: str = "POST",
    **headers: str,
) -> tuple[int, Json | str]:
    """One request, exactly as said: `Host` can be anything. The status, and the body if it is JSON."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    sent = {**ACCEPT, **({"Authorization": f"Bearer {token}"} if token else {}), **headers}
    try:
        connection.putrequest(method, path, skip_host="Host" in sent)
        for name, value in sent.items():
            connection.putheader(name, value)
        if data is not None and "Content-Length" not in sent:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders()
        try:
            if data is not None:
                connection.send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all of it was sent
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
    finally:
        connection.close()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, text
