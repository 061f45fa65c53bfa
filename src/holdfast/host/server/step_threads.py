"""Threads for connections in the middle of durable work: read, commit, answer, and nothing handed over in between.

An event loop with a writer behind it wakes five times for one commit, and on a busy machine each waking waits for its
turn. So a connection whose request can be served on a thread is lent to one, which goes on with it until something
else is asked, or nothing for a while; then the loop has it back, with what was asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from ...model.limits import AHEAD_MAX, LANE_IDLE_S, LANES_MAX, REQUEST_SMALL_BYTES
from ...system.brief_poll import Arrival
from ...wire import host_requests, quick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .connection import Peer

Json = dict[str, Any]
Answer = Callable[[Json, "Peer"], Json | None]  # None: it is not for a lane
_RECV_BYTES = 65536
_TOGETHER_S = 5e-3  # two who ask within this time are at work together: a commit takes less
_SOON_S = 150e-6  # a worker whose step's body is short asks again within this time
_WHILE = struct.pack("ll", LANE_IDLE_S, 0)


class _Ride:
    """A connection on its lane."""

    def __init__(self, sock: socket.socket, peer: Peer, decoder: host_requests.Decoder, waiting: list[Json]) -> None:
        # A descriptor of its own: the loop may close the connection's at any moment.
        self.sock, self.peer, self.decoder, self.waiting = sock.dup(), peer, decoder, waiting
        self.loop = asyncio.get_running_loop()
        self.back: asyncio.Future[list[Json] | None] = self.loop.create_future()

    def returned(self, waiting: list[Json] | None, error: Exception | None) -> None:
        try:
            self.loop.call_soon_threadsafe(self._settle, waiting, error)
        except RuntimeError:
            pass  # the daemon is leaving

    def _settle(self, waiting: list[Json] | None, error: Exception | None) -> None:
        if self.back.done():
            return
        if error is not None:
            self.back.set_exception(error)
        else:
            self.back.set_result(waiting)


class Lanes:
    """A few threads, made when they are needed; a connection that finds none free stays on the loop."""

    read = staticmethod(quick.parsed)

    def __init__(self, takes: Callable[[Json, Peer], bool], answer: Answer) -> None:
        self.takes, self._answer = takes, answer
        self._line: queue.SimpleQueue[_Ride] = queue.SimpleQueue()
        self._threads = self._busy = 0
        self._last: _Ride | None = None  # who was answered last, and when
        self._last_at = -math.inf  # a machine that has just booted has a clock near zero

    @property
    def free(self) -> bool:
        return self._busy < LANES_MAX

    async def serve(
        self, sock: socket.socket, peer: Peer, decoder: host_requests.Decoder, waiting: list[Json]
    ) -> list[Json] | None:
        """Answer until something comes that is not for a lane, which is returned; None: the client has left."""
        ride = _Ride(sock, peer, decoder, waiting)
        self._busy += 1
        if self._busy > self._threads:
            self._threads += 1
            threading.Thread(target=self._drive, name="work-lane", daemon=True).start()
        self._line.put(ride)
        try:
            return await ride.back
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread, which then lets go
            raise
        finally:
            self._busy -= 1

    # -- on the threads --------------------------------------------------------------------------------------------

    def _drive(self) -> None:
        while True:
            ride = self._line.get()
            waiting, error = None, None
            try:
                waiting = self._ride(ride)
            except Exception as e:  # noqa: BLE001 - it belongs to the connection, whose loop knows what to say
                error = e
            finally:
                if self._last is ride:
                    self._last = None
                ride.sock.setblocking(False)
                ride.sock.close()
                ride.returned(waiting, error)

    def _ride(self, ride: _Ride) -> list[Json] | None:
        sock, waiting, alone = ride.sock, ride.waiting, False
        sock.setblocking(True)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            sock.setsockopt(socket.SOL_SOCKET, option, _WHILE)
        arrival = Arrival(sock, _SOON_S)
        while True:
            while waiting:
                reply = self._answer(waiting[0], ride.peer)
                if reply is None:
                    return waiting
                del waiting[0]
                now = time.monotonic()
                alone = self._last is ride or now - self._last_at > _TOGETHER_S
                self._last, self._last_at = ride, now
                if not alone:
                    reply["crowded"] = True
                sock.sendall(quick.encode(reply))
            # Where others work as well, whoever stays awake for an answer is in their way.
            if not (arrival.wait_soon if alone else arrival.wait)(LANE_IDLE_S):
                return []
            data = sock.recv(_RECV_BYTES)
            if not data:
                return None
            waiting += ride.decoder.feed(data)
            if len(waiting) > AHEAD_MAX:
                raise host_requests.TooLarge("more requests at once than are kept")
            if not waiting and ride.decoder.pending > REQUEST_SMALL_BYTES:
                return []  # how much large requests may hold is for the loop to say
