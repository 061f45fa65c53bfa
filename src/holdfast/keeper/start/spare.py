"""What a keeper does before it knows its session: it settles in, and waits for a start.

Apart from the zygote's own loop because the rehearsal goes through it too, with a name and descriptors that do no harm.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from _signal import signal as _handle  # type: ignore[import-not-found]

from ...system import kernel

_MESSAGE_MAX = 8192  # a path
_TAKE = int(socket.MSG_DONTWAIT) | int(socket.MSG_CMSG_CLOEXEC)  # a number: adding up enumerations takes memory
_SIGCHLD = int(signal.SIGCHLD)


def settle_in(line: int, roles: str, name: str, standard: tuple[int, ...]) -> tuple[str, socket.socket, int]:
    """The registration, the host's line under a number of its own, and the null device, which `standard` are now."""
    # A keeper does want to know how its children end. Set by the bare call of the C module: the one that Python shows
    # makes enumerations of its answer, and what that touches is 100 KB for every keeper.
    _handle(_SIGCHLD, _noticed)
    kernel.set_name(name)
    registration = kernel.register(roles)
    host = socket.socket(fileno=os.dup(line))
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in standard:
        os.dup2(null, number)
    return registration, host, null


def _noticed(number: int, frame: object) -> None:
    """Only to have a handler: a keeper's loop is woken through its descriptor."""


def next_start(host: socket.socket, alive: int) -> tuple[str, bool, int] | None:
    """The folder of the next start, whether it is on pipes, and its channel; None when host or zygote are gone."""
    waiting = select.poll()
    waiting.register(host, select.POLLIN)
    waiting.register(alive, select.POLLIN)
    while True:
        for fd, _ in waiting.poll():
            if fd == alive:
                return None
        try:
            message, passed, _, _ = host.recvmsg(_MESSAGE_MAX, socket.CMSG_LEN(4), _TAKE)
        except BlockingIOError:
            continue
        if not message:
            return None
        return os.fsdecode(message[1:]), message[:1] == b"p", int.from_bytes(passed[0][2][:4], sys.byteorder)
