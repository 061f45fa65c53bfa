"""What a client can make a host or a keeper hold is bounded: silence, halves of requests, queues, odd values."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host
from holdfast.model import limits
from holdfast.model.errors import HoldfastError
from holdfast.wire import host_requests
from tests.support.home import HomeForTests, until
from tests.support.keeperline import dialled
from tests.support.operators import acting_as, enrol

WAIT_S = 60


def test_a_keeper_closes_a_connection_that_says_nothing_and_keeps_one_that_did(hold: HomeForTests) -> None:
    web = hold.run("cat", name="web")
    silent = dialled(f"{hold.path}/sessions/{web.id}/keeper.sock")
    half = dialled(f"{hold.path}/sessions/{web.id}/keeper.sock")
    half.sendall(b"\0\0\0\x20")
    mine = web.open()
    for sock in (silent, half):
        sock.settimeout(limits.HELLO_S + WAIT_S)
        assert sock.recv(1) == b""
        sock.close()
    mine.send(b"still here\n")
    assert web.wait(text="still here", timeout=WAIT_S).event == "text"
    mine.close()


def test_halves_of_large_requests_are_bounded_over_all_connections(hold: HomeForTests) -> None:
    """As many as there is room for are kept; the next is told so, and small requests are answered all the while."""
    hold.run("sleep", "600", name="web")
    half = host_requests.encode({"op": "news", "of": "tasks", "after": "x" * (12 << 20)})[:-1]
    told, socks = [], list[socket.socket]()
    try:
        for _ in range(limits.REQUESTS_BYTES_MAX // len(half) + 1):
            sock = dialled(f"{hold.path}/host.sock")
            socks.append(sock)
            sock.settimeout(WAIT_S)
            try:
                sock.sendall(half)
            except OSError:  # refused while it was still sending
                pass
            assert hold.host.call("ping")["host"]["pid"]
        for sock in socks:
            sock.settimeout(0)
            try:
                told.append(host_requests.Decoder().feed(sock.recv(65536))[0]["error"]["code"])
            except BlockingIOError:
                told.append("kept")
            except OSError:
                told.append("busy")  # and closed on it while it was sending
        assert set(told) == {"kept", "busy"}
        assert told.count("kept") * len(half) <= limits.REQUESTS_BYTES_MAX
        first = socks[0]
        first.settimeout(WAIT_S)
        first.sendall(b"}")
        assert (
            "ok" in host_requests.Decoder().feed(first.recv(65536))[0]
        )  # one that was kept is whole now, and answered
    finally:
        for sock in socks:
            sock.close()
    assert hold.host.call("ping")["host"]["pid"]
    assert "Traceback" not in (hold.path / "host.log").read_text()


def test_a_stopped_keeper_whose_queue_is_full_does_not_stop_the_host(hold: HomeForTests) -> None:
    web = hold.run("cat", name="web")
    keeper, queued = hold.keeper_pid(web), list[socket.socket]()
    os.kill(keeper, signal.SIGSTOP)
    try:
        with contextlib.suppress(BlockingIOError):  # until no more are taken
            for _ in range(4096):
                queued.append(dialled(f"{hold.path}/sessions/{web.id}/keeper.sock", blocking=False))
        with Host(str(hold.path)) as other, ThreadPoolExecutor(1) as pool:
            opening = pool.submit(other.call_fd, "open", session="web")
            for _ in range(5):
                assert hold.host.call("ping")["host"]["pid"]
            with pytest.raises(HoldfastError):
                opening.result(WAIT_S)
    finally:
        os.kill(keeper, signal.SIGCONT)
        for sock in queued:
            sock.close()
    channel = web.open()
    channel.send(b"hello\n")
    channel.close()
    assert web.wait(text="hello", timeout=WAIT_S).event == "text"


ASK = (
    "import sys, json, os, socket\n"
    "s = socket.socket(socket.AF_UNIX); s.connect(os.environ['HOLDFAST_HOME'] + '/host.sock')\n"
    "f = s.makefile('rb')\n"
    "for line in json.loads(sys.argv[1]):\n"
    "    b = json.dumps(line).encode(); s.sendall(len(b).to_bytes(4, 'big') + b)\n"
    "    print(json.loads(f.read(int.from_bytes(f.read(4), 'big'))).get('error', {}).get('code'))\n"
)
ODD: list[dict[str, Any]] = [
    {"limits": {"pids": "many"}},
    {"limits": {"memory": [1]}},
    {"limits": {"log": {}}},
    {"limits": "none"},
    {"limits": {"pids": -1}},
    {"limits": {"memory": 1e300}},
    {"umask": "x"},
    {"umask": 1 << 40},
]


def test_limits_of_another_type_are_an_error_of_the_one_who_sent_them(hold: HomeForTests, tmp_path: Path) -> None:
    """Outside, and through the door of an isolated session."""
    work = tmp_path / "work"
    work.mkdir()
    inside = hold.run("bash", "--norc", name="inside", isolate=True, cwd=str(work))
    start: dict[str, Any] = {"op": "run", "command": ["true"], "env": {}, "cwd": str(work), "brief": True}
    more: list[dict[str, Any]] = [{"rlimits": {"RLIMIT_NOFILE": "x"}}, {"rlimits": [1]}]
    for odd in ODD + more:
        with pytest.raises(HoldfastError) as e:
            hold.host.call(**{**start, **odd})
        assert e.value.code == "invalid", (odd, e.value.message)
    named: dict[str, Any] = {"name": ["a"]}
    asked = [{**start, **odd} for odd in [*ODD, named]]
    done = inside.exec(shlex.join([sys.executable, "-c", ASK, json.dumps(asked)]), timeout=WAIT_S)
    assert done.output.split() == ["invalid"] * len(asked), done.output
    assert "Traceback" not in (hold.path / "host.log").read_text()
    until(lambda: inside.status().state == "live", WAIT_S)


@pytest.mark.home("own")
def test_costly_searches_of_an_agent_leave_the_host_to_others(hold: HomeForTests) -> None:
    enrol(hold, "watcher", verbs=["view"], sessions=["*"])
    noisy = hold.run("sh", "-c", "head -c 300000 /dev/zero | tr '\\0' a; sleep 600", name="noisy")
    quiet = hold.run("sh", "-c", "echo ready; sleep 600", name="quiet")
    assert noisy.wait(text="a{500}", timeout=WAIT_S).event == "text"
    costly = r"(?:(?:a?b?c?d?){120}){4}x"  # near the largest that is taken

    def search() -> str:
        with acting_as(hold, "watcher") as agent:
            return agent.session("noisy").wait(text=costly, start=0, timeout=1).event

    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(search) for _ in range(8)]
        assert quiet.wait(text="ready", start=0, timeout=WAIT_S).event == "text"
        assert [wait.result(WAIT_S) for wait in waits] == ["timeout"] * 8
