"""Waiting on a host that is down, inside an isolated session: nothing there can start one, and nothing spins."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._async.host import AsyncHost
from holdfast.client._async.session import AsyncSession
from holdfast.client._io import blocking_socket
from holdfast.client._sync.host import Host
from holdfast.client._sync.session import Session
from holdfast.model.errors import HoldfastError
from holdfast.model.home import ISOLATED, Home
from holdfast.wire import host_requests

FEW = 20  # tries to connect; a loop without a pause has thousands in the time that these tests take


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv(ISOLATED, "1")
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return Home(str(path))


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every try to connect."""
    made: list[str] = []
    connect = blocking_socket.connect_socket

    def counted(home: Home) -> socket.socket:
        made.append(home.socket)
        return connect(home)

    for module in ("wait_for_host", "_io.blocking_socket", "_io.async_socket"):
        monkeypatch.setattr(f"holdfast.client.{module}.connect_socket", counted)
    return made


def test_a_wait_ends_with_its_time_and_without_spinning(home: Home, tries: list[str]) -> None:
    session = Session(Host(home.path), "ses_a", "a")
    with pytest.raises(HoldfastError, match="is not running"):
        session.wait_for("exit", None, 0.3)
    assert 0 < len(tries) < FEW


async def test_the_async_wait_does_neither(home: Home, tries: list[str]) -> None:
    session = AsyncSession(AsyncHost(home.path), "ses_a", "a")
    with pytest.raises(HoldfastError, match="is not running"):
        await session.wait_for("exit", None, 0.3)
    with pytest.raises(HoldfastError, match="is not running"):
        await session.host.asked_raw("ask_a", 0.1)
    assert 0 < len(tries) < FEW


def test_a_host_that_comes_back_is_asked_again(home: Home, tries: list[str]) -> None:
    answered: list[Any] = []
    session = Session(Host(home.path), "ses_a", "a")
    asking = threading.Thread(target=lambda: answered.append(session.wait_for("exit", None, None)))
    asking.start()
    while len(tries) < 2:  # it has found none, and waits
        os.sched_yield()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(home.socket)
        listening.listen(8)
        os.chmod(home.socket, 0o600)  # as a host does: that is what the kernel tells of
        listening.settimeout(20)
        while not answered:
            line, _ = listening.accept()
            line.settimeout(20)
            with line:
                data = line.recv(65536)
                if not data:
                    continue  # only looked whether there is one
                (request,) = host_requests.Decoder().feed(data)
                assert request["op"] == "wait"
                line.sendall(host_requests.encode({"ok": {"event": "exit"}}))
                asking.join(20)
    session.host.close()
    assert answered == [{"event": "exit"}]


async def test_another_error_is_not_asked_again(home: Home) -> None:
    with pytest.raises(HoldfastError, match="no"):
        await AsyncHost(home.path).again(HoldfastError("denied", "no", ""))
