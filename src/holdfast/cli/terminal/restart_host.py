"""Restarts a host that dies while a terminal is attached: the terminal works without it, but its program may need it.

The host's emulator answers terminal queries, and the host does restarts, waits and the inbox. So an attached client
does what the next command would do. A host that was stopped on purpose removed its socket: it stays down.
"""

from __future__ import annotations

import os

from ...client._io.blocking_socket import HostConnection, connect_socket
from ...model.errors import HoldfastError
from ...model.home import Home

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select
    import socket

_TRIES_MAX = 10  # restarts per terminal: a host that dies again and again is not fixed by starting it


class HostRestarter:
    """An idle connection that ends when the host does. `wake` interrupts the terminal's loop."""

    def __init__(self, home: Home, wake: int) -> None:
        self._home, self._wake = home, wake
        self._sock: socket.socket | None = None
        self._next: socket.socket | None = None
        self._tries = 0
        try:
            self._next = connect_socket(home)
        except OSError:
            pass  # it has just ended: the terminal continues without it

    @property
    def line(self) -> int:
        return self._sock.fileno() if self._sock is not None else -1

    def watch(self, poll: select.epoll) -> None:
        """Watch for the end of the current host."""
        if self._sock is None and self._next is not None:
            self._sock, self._next = self._next, None
            poll.register(self._sock, 0)  # only its end is reported

    def gone(self, poll: select.epoll) -> None:
        assert self._sock is not None
        poll.unregister(self._sock)
        self._sock.close()
        self._sock = None
        if self._tries >= _TRIES_MAX or not os.path.exists(self._home.socket):
            return
        self._tries += 1
        import threading  # few terminals see their host die

        threading.Thread(target=self._start, name="revive", daemon=True).start()

    def _start(self) -> None:
        """Start the host in a thread, while the terminal keeps working."""
        try:
            self._next = HostConnection.connect(self._home, autostart=True).sock
            os.write(self._wake, b"h")
        except (HoldfastError, OSError):
            pass  # the next command reports the error; or this terminal has detached

    def close(self) -> None:
        for sock in (self._sock, self._next):
            if sock is not None:
                sock.close()
