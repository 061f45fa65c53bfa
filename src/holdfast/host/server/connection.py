"""The host's socket: one request at a time per connection, answered with JSON and, where needed, a descriptor."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from ...model.errors import HoldfastError, from_disk_error
from ...system.peer_identity import credentials
from ...wire import host_requests
from ...wire.socket_address import reachable
from .read_budget import Incoming, Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..sessions.session import Session
    from .step_threads import Lanes

Json = dict[str, Any]
Handler = Callable[[Json, "Peer"], Awaitable["Reply"]]
log = logging.getLogger("holdfast.host")

_RECV_BYTES = 65536
_AT_ONCE_S = 0.02  # most answers come sooner, and nobody need look meanwhile whether the client is still there


class Reply:
    """An answer, and the descriptor that goes with it (closed here once sent)."""

    __slots__ = ("fd", "value")

    def __init__(self, value: Json, fd: int = -1) -> None:
        self.value, self.fd = value, fd


class Peer:
    """Who is at the other end, by the kernel's word, and what this connection has shown of itself."""

    __slots__ = ("door", "inside", "line", "nonce", "pid", "proven", "resolved", "sock", "uid")

    def __init__(self, sock: socket.socket, door: Session | None = None) -> None:
        self.sock, self.door = sock, door  # the session whose own socket it came through, if it was one
        self.pid, self.uid = credentials(sock)
        self.nonce: bytes | None = None  # waits to be signed
        self.proven: str | None = None  # the operator whose key it has
        self.inside: Session | None = None  # the session that the process runs in
        self.line: list[tuple[int, int]] = []  # itself and its parents, nearest first: pid and start time
        self.resolved = False


def listen(path: str) -> socket.socket:
    """Bind beside and rename over: at no moment is there a name without a listener behind it."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    temporary = f"{path}.{os.getpid()}"
    address, folder = reachable(temporary)
    before = os.umask(0o177)
    try:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        sock.bind(address)
    finally:
        os.umask(before)
        if folder >= 0:
            os.close(folder)
    sock.listen(512)
    os.replace(temporary, path)
    sock.setblocking(False)
    return sock


class Server:
    """Accepts, checks the peer's uid, and runs one handler at a time for each connection."""

    def __init__(
        self,
        sock: socket.socket,
        handle: Handler,
        foreign: Callable[[Peer], None],
        door: Session | None = None,
        most: int = 0,
        uid: int | None = None,
        reading: Reading | None = None,
        lanes: Lanes | None = None,
    ) -> None:
        """`foreign` hears of peers of another uid; `door` is the session whose own socket this is, if it is one;
        `most` bounds the connections at once (the rest wait to be accepted); `reading` what all hold half-read; `lanes`
        take connections over that are in the middle of durable work; `uid` is who may come besides our own."""
        self._uids = {os.getuid()} | ({uid} if uid else set())
        self._sock, self._handle, self._foreign, self._door = sock, handle, foreign, door
        self._reading, self._lanes = reading or Reading(), lanes
        self._room = asyncio.Semaphore(most) if most else None
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._room is not None:
                await self._room.acquire()
            try:
                client, _ = await loop.sock_accept(self._sock)
            except OSError as e:
                log.warning("cannot accept: %s", e)
                await asyncio.sleep(0.1)  # out of descriptors: those waiting stay in the backlog
                self._leave()
                continue
            client.setblocking(False)
            task = loop.create_task(self._connection(client))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connection(self, sock: socket.socket) -> None:
        try:
            peer = Peer(sock, self._door)
            if peer.uid not in self._uids:
                words = f"this host serves uid {os.getuid()}, you are {peer.uid}"
                await self._refuse(sock, HoldfastError("not_allowed", words, "start a host of your own: hold up"))
                self._foreign(peer)
                return
            await self._converse(sock, peer)
        except (OSError, host_requests.TooLarge, ValueError, HoldfastError) as e:
            if isinstance(e, HoldfastError):
                await self._refuse(sock, e)
            elif isinstance(e, host_requests.TooLarge):
                await self._refuse(sock, HoldfastError("invalid", str(e), "send less"))
            elif isinstance(e, ValueError):
                await self._refuse(sock, HoldfastError("invalid", "that is not a request", "see docs/protocol.md"))
        finally:
            sock.close()
            self._leave()

    def _leave(self) -> None:
        if self._room is not None:
            self._room.release()

    async def _converse(self, sock: socket.socket, peer: Peer) -> None:
        loop = asyncio.get_running_loop()
        incoming = Incoming(self._reading, host_requests.parsed if self._lanes is None else self._lanes.read)
        work: asyncio.Task[None] | None = None
        reading: asyncio.Task[bytes] | None = None  # kept from one request to the next: what it has read is not lost
        try:
            while True:
                if work is None and reading is None:
                    await self._lend(sock, peer, incoming)
                if work is None and incoming.waiting:
                    work = loop.create_task(self._answer(sock, incoming.next(), peer))
                    if reading is None:
                        await asyncio.wait({work}, timeout=_AT_ONCE_S)
                if work is None and reading is None and not incoming.due:  # nothing else to wait for, as nearly always
                    _take(incoming, await loop.sock_recv(sock, _RECV_BYTES), loop.time())
                elif work is None or not work.done():
                    reading = reading or loop.create_task(loop.sock_recv(sock, _RECV_BYTES))
                    ends = {work, reading} if work else {reading}
                    left = incoming.due - loop.time() if incoming.due else None
                    done, _ = await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                    if not done:
                        raise HoldfastError("timeout", "a request was begun and did not end", "send it whole")
                if reading is not None and reading.done():
                    data, reading = reading.result(), None
                    _take(incoming, data, loop.time())
                if work is not None and work.done():
                    ended, work = work, None
                    ended.result()
        finally:
            incoming.close()
            # A client that goes away, or talks nonsense, ends its own request: a wait for nobody is not kept up.
            if reading is not None:
                reading.cancel()
            if work is not None:
                work.add_done_callback(_forget)
                work.cancel()

    async def _lend(self, sock: socket.socket, peer: Peer, incoming: Incoming) -> None:
        """Lend the connection to a lane, if what is asked is for one, until it comes back."""
        waiting = incoming.waiting
        if not waiting or self._lanes is None or not self._lanes.free or not self._lanes.takes(waiting[0], peer):
            return
        rest = await self._lanes.serve(sock, peer, incoming.lent(), waiting)
        if rest is None:
            raise ConnectionResetError("the client has left")
        incoming.back(rest, asyncio.get_running_loop().time())

    async def _answer(self, sock: socket.socket, request: Json, peer: Peer) -> None:
        """Carry a request out and send its answer: from here, because whoever waits for the end of this hears later."""
        try:
            reply = await self._handle(request, peer)
        except HoldfastError as e:
            reply = Reply({"error": e.as_dict()})
        except asyncio.CancelledError:
            raise
        except Exception as e:
            error = _unforeseen(e)
            log.error("request %s failed: %s", request.get("op"), error.message, exc_info=error.code == "internal")
            reply = Reply({"error": error.as_dict()})
        await self._send(sock, reply)

    async def _send(self, sock: socket.socket, reply: Reply) -> None:
        loop = asyncio.get_running_loop()
        try:
            data = host_requests.encode(reply.value)
        except host_requests.TooLarge as e:
            data = host_requests.encode({"error": HoldfastError("failed", str(e), "ask for less").as_dict()})
        if reply.fd < 0:
            await loop.sock_sendall(sock, data)
            return
        try:
            # The descriptor rides on the first bytes; a reply to an idle connection always has room for them.
            sent = socket.send_fds(sock, [data[:4096]], [reply.fd])
        finally:
            os.close(reply.fd)
        await loop.sock_sendall(sock, data[sent:])

    async def _refuse(self, sock: socket.socket, error: HoldfastError) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(sock, host_requests.encode({"error": error.as_dict()}))
        except OSError:
            pass

    def close(self) -> None:
        self._sock.close()
        for task in self._tasks:
            task.cancel()


def _take(incoming: Incoming, data: bytes, now: float) -> None:
    if not data:
        raise ConnectionResetError("the client has left")
    incoming.feed(data, now)


def _forget(work: asyncio.Task[None]) -> None:
    """Nobody takes this answer any more: that it could not be sent is no news."""
    if not work.cancelled():
        work.exception()


def _unforeseen(e: Exception) -> HoldfastError:
    if (disk := from_disk_error(e)) is not None:
        return HoldfastError(disk.code, disk.message.replace("the disk", "the disk of this home"), disk.hint)
    if isinstance(e, OSError) and e.errno in (errno.EMFILE, errno.ENFILE):
        return HoldfastError("busy", "the host has no descriptor left", "end some sessions, or raise ulimit -n")
    if isinstance(e, RuntimeError) and "new thread" in str(e):  # Python has no class of its own for it
        return HoldfastError("busy", "the host can start no thread", "end some processes, or raise ulimit -u")
    return HoldfastError("internal", f"internal error: {e!r}", "please report it with host.log from the home")
