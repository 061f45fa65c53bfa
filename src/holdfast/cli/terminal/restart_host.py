"""An attached terminal does not need the host, but its program may: a host that dies under it is started again.

Terminal queries are answered by the host's emulator, and restarts, waits and the inbox are its work. So whoever stays
attached does what the next command would do. A host that was stopped on purpose took its socket along: it stays down.
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

_TRIES_MAX = 10  # hosts that died under one terminal: one that dies again and again is not mended by starting it


class HostRestarter:
    """A connection on which nothing is said: its end is the host's. `wake` interrupts the terminal's loop."""

    def __init__(self, home: Home, wake: int) -> None:
        self._home, self._wake = home, wake
        self._sock: socket.socket | None = None
        self._next: socket.socket | None = None
        self._tries = 0
        try:
            self._next = connect_socket(home)
        except OSError:
            pass  # it went in this very moment: the terminal goes on without

    @property
    def line(self) -> int:
        return self._sock.fileno() if self._sock is not None else -1

    def watch(self, poll: select.epoll) -> None:
        """Hear of the end of the host that there is now."""
        if self._sock is None and self._next is not None:
            self._sock, self._next = self._next, None
            poll.register(self._sock, 0)  # nothing but its end is told

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
        """Beside the terminal, which goes on typing meanwhile."""
        try:
            self._next = HostConnection.connect(self._home, autostart=True).sock
            os.write(self._wake, b"h")
        except (HoldfastError, OSError):
            pass  # the next command says what is wrong; or this terminal has detached meanwhile

    def close(self) -> None:
        for sock in (self._sock, self._next):
            if sock is not None:
                sock.close()
