"""Replies that bring a descriptor, and break off: the descriptor does not stay behind."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterator

import pytest

from holdfast.client._io.async_socket import AsyncHostConnection
from holdfast.client._io.blocking_socket import HostConnection
from holdfast.wire import host_requests
from tests.support.home import until_async

REPLY = host_requests.encode({"ok": {"text": "x" * 1000}})


def opened() -> set[str]:
    """The descriptors of this process, by what they are; the one that lists them is not among them."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{fd} {os.readlink(f'/proc/self/fd/{fd}')}")
        except OSError:
            continue
    return found


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.close()


def given(sock: socket.socket, data: bytes) -> None:
    """As a host gives one: it rides on the first bytes, and is closed over there."""
    fd = os.open(os.devnull, os.O_RDONLY)
    socket.send_fds(sock, [data], [fd])
    os.close(fd)


def in_half(sock: socket.socket) -> None:
    given(sock, REPLY[:100])
    sock.close()


def nonsense(sock: socket.socket) -> None:
    given(sock, (3).to_bytes(4, "big") + b"{{{")


def too_large(sock: socket.socket) -> None:
    given(sock, b"\xff\xff\xff\xff....")


BROKEN = [in_half, nonsense, too_large]
Breaking = Callable[[socket.socket], None]


@pytest.mark.parametrize("breaking", BROKEN)
def test_a_reply_that_breaks_off_leaves_no_descriptor(
    pair: tuple[socket.socket, socket.socket], breaking: Breaking
) -> None:
    before = opened()
    breaking(pair[1])
    with pytest.raises((ConnectionError, ValueError, host_requests.TooLarge)):
        HostConnection(pair[0]).receive()
    assert opened() <= before


@pytest.mark.parametrize("breaking", BROKEN)
async def test_a_reply_that_breaks_off_leaves_none_under_asyncio(
    pair: tuple[socket.socket, socket.socket], breaking: Breaking
) -> None:
    before = opened()
    breaking(pair[1])
    with pytest.raises((ConnectionError, ValueError, host_requests.TooLarge)):
        await AsyncHostConnection(pair[0]).receive()
    assert opened() <= before


async def test_who_stops_waiting_in_the_middle_of_a_reply_keeps_no_descriptor(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    before = opened()
    given(pair[1], REPLY[:100])
    waiting = asyncio.create_task(AsyncHostConnection(pair[0]).receive())
    await until_async(lambda: any("/dev/null" in one for one in opened() - before))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert opened() <= before


def test_a_second_descriptor_takes_the_place_of_the_first(pair: tuple[socket.socket, socket.socket]) -> None:
    before = opened()
    given(pair[1], REPLY[:100])
    given(pair[1], REPLY[100:])
    reply, fd = HostConnection(pair[0]).receive()
    assert reply == {"ok": {"text": "x" * 1000}}
    assert len([one for one in opened() - before if "/dev/null" in one]) == 1
    assert not os.get_inheritable(fd)
    os.close(fd)
    assert opened() <= before
