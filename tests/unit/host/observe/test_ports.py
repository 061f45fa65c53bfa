"""Ports and connections of real sockets, by netlink and by /proc alike, each with its owner."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.observe import ports as net
from holdfast.host.observe import proc_net, sock_diag
from tests.support.child import running

ME = [os.getpid()]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(params=["netlink", "proc"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both sources; the second by refusing netlink, as a sandbox does."""
    if request.param == "proc":

        def refused(*_: object) -> Any:
            raise PermissionError(1, "refused")

        monkeypatch.setattr(sock_diag, "_dump", refused)
    return str(request.param)


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def port_of(sock: socket.socket) -> int:
    return int(sock.getsockname()[1])


def row(port: int, pids: list[int] = ME) -> dict[str, Any] | None:
    found = [row for row in net.ports(pids) if row["port"] == port]
    assert len(found) < 2
    return found[0] if found else None


def test_a_listening_socket_is_a_port_of_its_process(stack: ExitStack, source: str) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    port = port_of(server)
    assert row(port) == {"port": port, "address": "127.0.0.1", "protocol": "tcp", "pid": os.getpid()}
    server.close()
    assert row(port) is None


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize("address", ["::1", "::"])
def test_ipv6_listeners_are_found(stack: ExitStack, source: str, address: str) -> None:
    server = stack.enter_context(socket.create_server((address, 0), family=socket.AF_INET6))
    found = row(port_of(server))
    assert found is not None
    assert (found["address"], found["protocol"]) == (address, "tcp")


def test_a_bound_udp_socket_is_a_port_too(stack: ExitStack, source: str) -> None:
    sock = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
    sock.bind(("127.0.0.1", 0))
    found = row(port_of(sock))
    assert found is not None
    assert found["protocol"] == "udp"


def test_a_socket_that_does_not_listen_yet_is_no_port(stack: ExitStack, source: str) -> None:
    sock = stack.enter_context(socket.socket())
    sock.bind(("127.0.0.1", 0))
    assert row(port_of(sock)) is None


def test_somebody_elses_port_is_not_ours(stack: ExitStack, source: str) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    with running(["sleep", "100"]) as other:
        assert row(port_of(server), [other.pid]) is None
    inode = os.fstat(server.fileno()).st_ino
    assert net.listeners()[inode] == ("127.0.0.1", port_of(server), "tcp")


def test_a_shared_socket_belongs_to_the_first_process_asked_about(stack: ExitStack) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    with running(["sleep", "100"], pass_fds=[server.fileno()]) as heir:
        for order in ([os.getpid(), heir.pid], [heir.pid, os.getpid()]):
            found = row(port_of(server), order)
            assert found is not None
            assert found["pid"] == order[0]


def test_owners_are_listed_with_their_descriptors(stack: ExitStack) -> None:
    sock = stack.enter_context(socket.socket())
    twin = stack.enter_context(sock.dup())
    owners = net.socket_owners([os.getpid(), 0x7FFFFFFE])
    held = owners[os.fstat(sock.fileno()).st_ino]
    assert sorted(held) == sorted([(os.getpid(), sock.fileno()), (os.getpid(), twin.fileno())])


def test_a_watcher_follows_listeners_as_they_come_and_go(stack: ExitStack) -> None:
    watcher = net.PortWatcher()
    first = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    ports = {row["port"] for row in watcher.ports(ME)}
    assert port_of(first) in ports
    second = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    assert {row["port"] for row in watcher.ports(ME)} == ports | {port_of(second)}
    second_port = port_of(second)
    second.close()
    assert second_port not in {row["port"] for row in watcher.ports(ME)}


def test_a_watcher_scans_descriptors_only_when_sockets_or_members_change(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned: list[list[int]] = []
    scan = net.socket_owners

    def counting(pids: list[int]) -> Any:
        scanned.append(list(pids))
        return scan(pids)

    # The listeners of the whole machine change while other tests run: only ours are looked at here.
    mine = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    inode = os.fstat(mine.fileno()).st_ino
    monkeypatch.setattr(net, "listeners", lambda pids: {inode: ("127.0.0.1", port_of(mine), "tcp"), 1: ("", 1, "tcp")})
    monkeypatch.setattr(net, "socket_owners", counting)
    watcher = net.PortWatcher()
    watcher.ports(ME)
    watcher.ports(ME)
    watcher.ports([*ME, 0x7FFFFFFE])
    assert scanned == [ME, [], [0x7FFFFFFE]]


def test_a_watcher_notices_that_the_known_holder_let_go(stack: ExitStack) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    port = port_of(server)
    with running(["sleep", "100"], pass_fds=[server.fileno()]) as heir:
        watcher = net.PortWatcher()
        pids = [os.getpid(), heir.pid]
        assert [row["pid"] for row in watcher.ports(pids) if row["port"] == port] == [os.getpid()]
        server.close()
        assert [row["pid"] for row in watcher.ports(pids) if row["port"] == port] == [heir.pid]
        assert [row["pid"] for row in watcher.ports(ME) if row["port"] == port] == []


def test_a_process_that_joins_later_is_asked_about_its_old_socket(stack: ExitStack) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    watcher = net.PortWatcher()
    with running(["sleep", "100"]) as other:
        assert [row for row in watcher.ports([other.pid]) if row["port"] == port_of(server)] == []
        assert [row["pid"] for row in watcher.ports([other.pid, *ME]) if row["port"] == port_of(server)] == ME


def test_both_ends_of_a_connection_are_seen(stack: ExitStack, source: str) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    client = stack.enter_context(socket.create_connection(server.getsockname()))
    accepted = stack.enter_context(server.accept()[0])
    near, far = f"127.0.0.1:{port_of(client)}", f"127.0.0.1:{port_of(accepted)}"
    found = [(row["local"], row["remote"], row["state"], row["pid"]) for row in net.connections(ME).connections]
    assert (near, far, "ESTABLISHED", os.getpid()) in found
    assert (far, near, "ESTABLISHED", os.getpid()) in found
    assert not [row for row in net.connections(ME).connections if row["state"] == "LISTEN"]


def test_the_state_of_a_connection_follows_the_kernel(stack: ExitStack, source: str) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    client = stack.enter_context(socket.create_connection(server.getsockname()))
    accepted = stack.enter_context(server.accept()[0])
    client.shutdown(socket.SHUT_WR)
    accepted.recv(1)  # the end has arrived
    far = f"127.0.0.1:{port_of(accepted)}"
    states = {
        row["local"] == far: row["state"]
        for row in net.connections(ME).connections
        if far in (row["local"], row["remote"])
    }
    assert states[True] == "CLOSE_WAIT"
    assert states[False] in ("FIN_WAIT1", "FIN_WAIT2")  # until the end is acknowledged, and after


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_ipv6_ends_are_written_in_brackets(stack: ExitStack, source: str) -> None:
    server = stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6))
    client = stack.enter_context(socket.create_connection(server.getsockname()[:2]))
    found = {(row["local"], row["remote"]) for row in net.connections(ME).connections}
    assert (f"[::1]:{port_of(client)}", f"[::1]:{port_of(server)}") in found


def test_a_connected_udp_socket_is_a_connection(stack: ExitStack, source: str) -> None:
    target = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
    target.bind(("127.0.0.1", 0))
    sock = stack.enter_context(socket.socket(type=socket.SOCK_DGRAM))
    sock.connect(target.getsockname())
    found = [row for row in net.connections(ME).connections if row["remote"] == f"127.0.0.1:{port_of(target)}"]
    assert [(row["protocol"], row["state"]) for row in found] == [("udp", "ESTABLISHED")]
    assert row(port_of(sock)) is None  # it talks to one peer: it serves nobody


@pytest.mark.parametrize("name", ["path", "abstract"])
def test_a_connection_to_a_unix_server_shows_the_name_of_the_server(
    stack: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)  # a path may have 107 bytes: the name is relative, and shown as it was bound
    address = "db.sock" if name == "path" else f"\0holdfast-test-{os.getpid()}"
    shown = "unix:db.sock" if name == "path" else f"unix:@holdfast-test-{os.getpid()}"
    server = stack.enter_context(socket.socket(socket.AF_UNIX))
    server.bind(address)
    server.listen()
    source = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1].replace('@', chr(0)))\n"
    argument = address.replace("\0", "@")
    with running([sys.executable, "-c", source + "input()", argument], stdin=subprocess.PIPE) as client:
        accepted = stack.enter_context(server.accept()[0])
        ours = [row for row in net.connections([client.pid]).connections if row["protocol"] == "unix"]
        assert ours == [
            {"local": "unix:", "remote": shown, "state": "ESTABLISHED", "protocol": "unix", "pid": client.pid}
        ]
        theirs = [row for row in net.connections(ME).connections if row["local"] == shown]
        assert [(row["remote"], row["state"]) for row in theirs] == [("unix:", "ESTABLISHED")]
        accepted.close()


def test_a_nameless_pair_is_no_connection_to_anything(stack: ExitStack) -> None:
    for sock in socket.socketpair():
        stack.enter_context(sock)
    with running(["sleep", "100"], pass_fds=[sock.fileno()]) as process:
        assert net.connections([process.pid]).connections == []


def test_more_connections_than_the_limit_are_said_to_be_cut(stack: ExitStack) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    for _ in range(3):
        stack.enter_context(socket.create_connection(server.getsockname()))
    assert not net.connections(ME).truncated
    cut = net.connections(ME, limit=2)
    assert (len(cut.connections), cut.truncated) == (2, True)


def test_netlink_and_proc_agree(stack: ExitStack) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    client = stack.enter_context(socket.create_connection(server.getsockname()))
    for sock, state in ((server, sock_diag.LISTEN), (client, sock_diag.ESTABLISHED)):
        inode = os.fstat(sock.fileno()).st_ino
        states = frozenset({state})
        # Sets: while other tests connect, either table can show one socket twice.
        [first] = {s for s in sock_diag.inet_sockets(sock_diag.TCP, states) if s.inode == inode}
        [second] = {s for s in proc_net.inet_sockets(sock_diag.TCP, states) if s.inode == inode}
        assert first == second


@pytest.mark.parametrize("table", [sock_diag, proc_net])
def test_a_socket_that_the_kernel_shows_twice_is_listed_once(
    stack: ExitStack, source: str, monkeypatch: pytest.MonkeyPatch, table: Any
) -> None:
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    stack.enter_context(socket.create_connection(server.getsockname()))
    shown = table.inet_sockets
    monkeypatch.setattr(table, "inet_sockets", lambda *asked: [*shown(*asked), *shown(*asked)])
    remotes = [row["remote"] for row in net.connections(ME).connections]
    assert remotes.count(f"127.0.0.1:{port_of(server)}") == 1
    assert row(port_of(server)) is not None


def can_unshare() -> bool:
    command = ["unshare", "-n", "true"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not can_unshare(), reason="needs unshare(1) and the right to make a network namespace")
def test_a_listener_in_another_network_namespace_is_found(tmp_path: Path) -> None:
    source = "import socket; s = socket.create_server(('0.0.0.0', 4711)); print('up', flush=True); input()"
    command = ["unshare", "-n", sys.executable, "-c", source]
    with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert {"port": 4711, "address": "0.0.0.0", "protocol": "tcp", "pid": process.pid} in net.ports([process.pid])


def test_five_hundred_listeners_are_all_found(stack: ExitStack) -> None:
    """Several netlink messages long: a dump that is cut after the first one would lose most of them."""
    opened = {port_of(stack.enter_context(socket.create_server(("127.0.0.1", 0)))) for _ in range(500)}
    assert opened <= {row["port"] for row in net.ports(ME)}
