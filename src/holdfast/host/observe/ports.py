"""Ports and connections of a session's processes, each with the pid that owns it.

Sockets belong to network namespaces. Those of this process's namespace come from netlink; a process that
lives in another one (a container) is asked through its own /proc/PID/net, which does not tell unix peers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from . import proc_net, sock_diag
from .sock_diag import CLOSE, ESTABLISHED, LISTEN, STATES, TCP, UDP, InetSocket, UnixSocket

# Connections listed in one answer: 4,096 rows are about 400 KB of JSON, and more than anybody reads.
CONNECTIONS_MAX = 4096
_CONNECTED = frozenset(STATES) - {LISTEN, CLOSE}


class Connections(NamedTuple):
    """The session object's `connections`; `truncated` where there were more than CONNECTIONS_MAX."""

    connections: list[dict[str, Any]]
    truncated: bool


class PortWatcher:
    """Who listens where, asked again and again at the price of one netlink dump.

    Descriptors are scanned only where needed: for a socket not seen before, one whose known holder let it go,
    and processes not seen before. A socket passed to a member over a unix socket by a stranger is the one
    thing this misses; a new watcher would find it.
    """

    def __init__(self) -> None:
        self._holders: dict[int, tuple[int, int]] = {}  # inode -> (pid, fd) of one member that holds it
        self._sockets: frozenset[int] = frozenset()
        self._members: frozenset[int] = frozenset()

    def ports(self, pids: Sequence[int]) -> list[dict[str, Any]]:
        """The session object's `ports`: a row per listening socket, with the first of `pids` holding it."""
        members = frozenset(pids)
        found = listeners(pids)
        kept = {
            inode: holder
            for inode, holder in self._holders.items()
            if inode in found and holder[0] in members and _link(*holder) == f"socket:[{inode}]"
        }
        lost = self._holders.keys() & found.keys() - kept.keys()
        fresh = found.keys() - self._sockets
        to_scan = pids if lost or fresh else [pid for pid in pids if pid not in self._members]
        if found.keys() - kept.keys():
            for inode, holders in socket_owners(to_scan).items():
                if inode in found:
                    kept.setdefault(inode, holders[0])
        self._holders, self._sockets, self._members = kept, frozenset(found), members
        rows = [
            {"port": port, "address": address, "protocol": protocol, "pid": kept[inode][0]}
            for inode, (address, port, protocol) in found.items()
            if inode in kept
        ]
        return sorted(rows, key=lambda row: (row["port"], row["protocol"], row["address"], row["pid"]))


def ports(pids: Sequence[int]) -> list[dict[str, Any]]:
    """The same, asked once."""
    return PortWatcher().ports(pids)


def listeners(pids: Iterable[int] = ()) -> dict[int, tuple[str, int, str]]:
    """inode -> (address, port, protocol) of every listening TCP and bound UDP socket, by whomever.

    It covers this network namespace, and those that `pids` live in.
    """
    found: dict[int, tuple[str, int, str]] = {}
    for network in _networks(pids):
        for protocol, state in ((TCP, LISTEN), (UDP, CLOSE)):
            for sock in network.inet(protocol, frozenset({state})):
                if sock.inode and sock.port:
                    found[sock.inode] = (sock.address, sock.port, sock.protocol)
    return found


def connections(pids: Sequence[int], limit: int = CONNECTIONS_MAX) -> Connections:
    """Connections that `pids` hold, unix sockets with a name at either end included.

    A nameless pair (a program talking to itself or to its child) leads nowhere else, and is left out.
    """
    holders = socket_owners(pids)
    rows: list[dict[str, Any]] = []
    if not holders:
        return Connections(rows, truncated=False)
    for network in _networks(pids):
        for row in _rows_of(network, holders):
            if len(rows) >= limit:
                return Connections(rows, truncated=True)
            rows.append(row)
    return Connections(rows, truncated=False)


def socket_owners(pids: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
    """inode -> [(pid, fd)] of every socket these processes hold, in the order of `pids`."""
    found: dict[int, list[tuple[int, int]]] = {}
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        try:
            fds = os.listdir(folder)
        except OSError:
            continue  # gone, or another user's
        for fd in fds:
            try:
                link = os.readlink(f"{folder}/{fd}")
            except OSError:
                continue
            if link.startswith("socket:["):
                found.setdefault(int(link[8:-1]), []).append((pid, int(fd)))
    return found


class _Network:
    """How to ask one network namespace: our own where `pid` is None, else the one that process lives in."""

    def __init__(self, pid: int | None) -> None:
        self._pid = pid

    def inet(self, protocol: int, states: frozenset[int]) -> Iterable[InetSocket]:
        if self._pid is not None:
            return proc_net.inet_sockets(protocol, states, self._pid)
        try:
            return list(sock_diag.inet_sockets(protocol, states))
        except OSError:
            return proc_net.inet_sockets(protocol, states)  # refused by a sandbox's filter, or not built in

    def unix(self) -> Iterable[UnixSocket]:
        if self._pid is not None:
            return proc_net.unix_sockets(self._pid)
        try:
            return list(sock_diag.unix_sockets())
        except OSError:
            return proc_net.unix_sockets()


def _networks(pids: Iterable[int]) -> list[_Network]:
    """Our own, then one for each other namespace that `pids` live in."""
    own = _namespace("self")
    strangers: dict[str, int] = {}
    for pid in pids:
        namespace = _namespace(pid)
        if namespace is not None and namespace != own:
            strangers.setdefault(namespace, pid)
    return [_Network(None), *map(_Network, strangers.values())]


def _namespace(pid: int | str) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def _link(pid: int, fd: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return None


def _rows_of(network: _Network, holders: dict[int, list[tuple[int, int]]]) -> Iterator[dict[str, Any]]:
    for protocol, states in ((TCP, _CONNECTED), (UDP, frozenset({ESTABLISHED}))):
        # By inode: a table that changes while it is read can show one socket twice.
        for sock in {sock.inode: sock for sock in network.inet(protocol, states)}.values():
            if sock.inode in holders:
                local = _endpoint(sock.address, sock.port)
                remote = _endpoint(sock.remote_address, sock.remote_port)
                yield _row(local, remote, sock.state, sock.protocol, holders[sock.inode])
    ends = {end.inode: end for end in network.unix()}
    for inode, end in ends.items():
        if inode in holders and end.state == ESTABLISHED:
            peer = ends.get(end.peer) if end.peer is not None else None
            far = peer.name if peer is not None else ""
            if end.name or far:
                yield _row(f"unix:{end.name}", f"unix:{far}", end.state, "unix", holders[inode])


def _row(local: str, remote: str, state: int, protocol: str, holders: list[tuple[int, int]]) -> dict[str, Any]:
    return {
        "local": local,
        "remote": remote,
        "state": STATES.get(state, str(state)),
        "protocol": protocol,
        "pid": holders[0][0],
    }


def _endpoint(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
