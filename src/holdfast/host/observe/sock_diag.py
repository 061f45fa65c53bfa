"""Sockets straight from the kernel: netlink sock_diag by hand, because /proc/net is ten times slower."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import NamedTuple

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH
_DUMP_INTERRUPTED = 0x10  # the table changed while it was read
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_ATTEMPTS_MAX = 3  # of a dump that keeps being interrupted; the last one is then taken as it is
_RECEIVE_BYTES = 256 << 10  # the kernel fills at most 32 KB a message; room for a larger page size

_INET_MESSAGE = struct.Struct("=BBBB2s2s16s16s28xI")  # struct inet_diag_msg: ... ports, addresses ... inode
_UNIX_MESSAGE = struct.Struct("=BBBxI8x")  # struct unix_diag_msg: family, type, state, inode, cookie
_UNIX_NAME, _UNIX_PEER = 0, 2
_SHOW_NAME_AND_PEER = 0x1 | 0x4

STATES = {
    1: "ESTABLISHED",
    2: "SYN_SENT",
    3: "SYN_RECV",
    4: "FIN_WAIT1",
    5: "FIN_WAIT2",
    6: "TIME_WAIT",
    7: "CLOSE",
    8: "CLOSE_WAIT",
    9: "LAST_ACK",
    10: "LISTEN",
    11: "CLOSING",
    12: "SYN_RECV",
}
LISTEN, CLOSE, ESTABLISHED = 10, 7, 1
TCP, UDP = socket.IPPROTO_TCP, socket.IPPROTO_UDP


class InetSocket(NamedTuple):
    inode: int
    protocol: str  # "tcp" or "udp"
    address: str
    port: int
    remote_address: str
    remote_port: int
    state: int


class UnixSocket(NamedTuple):
    inode: int
    name: str  # "" where it is not bound; "@…" in the abstract namespace
    peer: int | None  # the peer's inode
    state: int


def inet_sockets(protocol: int, states: frozenset[int]) -> Iterator[InetSocket]:
    """TCP or UDP sockets of this network namespace in one of `states`, of both address families."""
    mask = sum(1 << state for state in states)
    name = "tcp" if protocol == TCP else "udp"
    for family, length in ((socket.AF_INET, 4), (socket.AF_INET6, 16)):
        request = struct.pack("=BBBBI48x", family, protocol, 0, 0, mask)
        try:
            messages = _dump(request)
        except FileNotFoundError:
            continue  # a kernel without IPv6
        for message in messages:
            _, state, _, _, sport, dport, source, target, inode = _INET_MESSAGE.unpack_from(message)
            yield InetSocket(
                inode,
                name,
                socket.inet_ntop(family, source[:length]),
                int.from_bytes(sport, "big"),
                socket.inet_ntop(family, target[:length]),
                int.from_bytes(dport, "big"),
                state,
            )


def unix_sockets() -> Iterator[UnixSocket]:
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, _SHOW_NAME_AND_PEER, 0, 0)
    for message in _dump(request):
        _, _, state, inode = _UNIX_MESSAGE.unpack_from(message)
        name, peer = b"", None
        for kind, value in _attributes(message, _UNIX_MESSAGE.size):
            if kind == _UNIX_NAME:
                name = value
            elif kind == _UNIX_PEER:
                peer = int(struct.unpack_from("=I", value)[0])
        yield UnixSocket(inode, unix_name(name), peer, state)


def unix_name(raw: bytes) -> str:
    """A path ends at its first NUL; an abstract name begins with one, and is written with an @."""
    if raw[:1] == b"\0":
        return "@" + raw[1:].decode("utf-8", "backslashreplace")
    return raw.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _dump(request: bytes) -> list[memoryview]:
    for _ in range(_ATTEMPTS_MAX):
        messages, whole = _dump_once(request)
        if whole:
            break
    return messages


def _dump_once(request: bytes) -> tuple[list[memoryview], bool]:
    messages: list[memoryview] = []
    whole = True
    header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as link:
        link.send(header + request)
        while True:
            data = memoryview(link.recv(_RECEIVE_BYTES))
            position = 0
            while position + _HEADER.size <= len(data):
                length, kind, flags, _, _ = _HEADER.unpack_from(data, position)
                whole = whole and not flags & _DUMP_INTERRUPTED
                if kind == _NLMSG_DONE:
                    return messages, whole
                if kind == _NLMSG_ERROR:
                    code = -struct.unpack_from("=i", data, position + _HEADER.size)[0]
                    raise OSError(code, os.strerror(code))
                messages.append(data[position + _HEADER.size : position + length])
                position += (length + 3) & ~3


def _attributes(message: memoryview, position: int) -> Iterator[tuple[int, bytes]]:
    while position + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, position)
        if length < 4:
            return
        yield kind, bytes(message[position + 4 : position + length])
        position += (length + 3) & ~3
