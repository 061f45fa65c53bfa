"""The same sockets from /proc/PID/net, for another network namespace and where netlink is refused."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from .sock_diag import ESTABLISHED, LISTEN, TCP, InetSocket, UnixSocket

_UNIX_ACCEPTS = 0x10000  # __SO_ACCEPTCON: the socket listens
_UNIX_CONNECTED = 3  # SS_CONNECTED


def inet_sockets(protocol: int, states: frozenset[int], pid: int | str = "self") -> Iterator[InetSocket]:
    """TCP or UDP sockets of the network namespace `pid` lives in."""
    name = "tcp" if protocol == TCP else "udp"
    for table, family in ((name, socket.AF_INET), (f"{name}6", socket.AF_INET6)):
        for fields in _rows(pid, table):
            state = int(fields[3], 16)
            if state in states:
                address, port = _endpoint(fields[1], family)
                remote, remote_port = _endpoint(fields[2], family)
                yield InetSocket(int(fields[9]), name, address, port, remote, remote_port, state)


def unix_sockets(pid: int | str = "self") -> Iterator[UnixSocket]:
    """Bound sockets; this table does not tell who is at the other end."""
    for fields in _rows(pid, "unix"):
        if len(fields) > 7:
            accepts, connected = int(fields[3], 16) & _UNIX_ACCEPTS, int(fields[5], 16) == _UNIX_CONNECTED
            state = LISTEN if accepts else ESTABLISHED if connected else 0
            yield UnixSocket(int(fields[6]), " ".join(fields[7:]), None, state)


def _rows(pid: int | str, table: str) -> list[list[str]]:
    try:
        text = Path(f"/proc/{pid}/net/{table}").read_text(encoding="utf-8", errors="backslashreplace")
    except OSError:
        return []  # no such protocol here, or the process is gone
    return [line.split() for line in text.splitlines()[1:]]


def _endpoint(text: str, family: int) -> tuple[str, int]:
    """`0100007F:1F90`: each 32-bit word of the address as this machine reads it, then the port."""
    address, _, port = text.partition(":")
    words = [int(address[i : i + 8], 16) for i in range(0, len(address), 8)]
    return socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words)), int(port, 16)
