"""A host that dies under a request: the operation's row says whether it is asked again, and by which id it is known."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from holdfast.wire import host_requests

Json = dict[str, Any]


class DyingHost:
    """Takes one request and dies; the next it answers with what it was asked."""

    def __init__(self, home: Path) -> None:
        home.mkdir(mode=0o700)
        self.asked: list[Json] = []
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.bind(str(home / "host.sock"))
        self._sock.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for answers in (False, True):
            try:
                client, _ = self._sock.accept()
            except OSError:
                return
            with client:
                decoder = host_requests.Decoder()
                while not (found := decoder.feed(client.recv(65536))):
                    pass
                self.asked += found
                if answers:
                    client.sendall(host_requests.encode({"ok": found[0]}))

    def close(self) -> None:
        self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()
        self._thread.join()


@pytest.fixture
def dying(tmp_path: Path) -> Iterator[tuple[DyingHost, Host]]:
    home = Path(os.path.relpath(tmp_path)) / "h" if len(str(tmp_path)) > 80 else tmp_path / "h"
    made = DyingHost(home)
    with Host(str(home), autostart=False) as host:
        yield made, host
    made.close()


@pytest.mark.parametrize(
    ("op", "request_"),
    [
        ("news", {"of": "list"}),
        ("snapshot", {"session": "web"}),
        ("token_check", {"hash": "0" * 64}),
        ("login_check", {"hash": "0" * 64}),
        ("ls", {}),
        ("task_ls", {}),
    ],
)
def test_what_only_looks_is_asked_again(dying: tuple[DyingHost, Host], op: str, request_: Json) -> None:
    made, host = dying
    assert host.call(op, **request_) == {"op": op, **request_}
    assert made.asked == [{"op": op, **request_}] * 2


@pytest.mark.parametrize("op", ["send", "kill", "stop", "take", "release", "hand"])
def test_an_act_is_asked_again_under_the_same_id_and_says_so(dying: tuple[DyingHost, Host], op: str) -> None:
    made, host = dying
    host.call(op, session="web")
    first, second = made.asked
    assert first["request"].startswith("req_")
    assert "asked_s_ago" not in first
    assert second.pop("asked_s_ago") >= 0
    assert first == second


def test_what_is_known_by_nothing_is_not_asked_again(dying: tuple[DyingHost, Host]) -> None:
    made, host = dying
    with pytest.raises(HoldfastError, match="the host went away during rename") as e:
        host.call("rename", session="web", name="api")
    assert e.value.code == "host_gone"
    assert len(made.asked) == 1
