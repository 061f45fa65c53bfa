"""One connection to the keeper: its rights, its place in the output, and the little that waits to be sent.

There is no output queue. A channel that follows the live end is handed each chunk as it comes; one that lags
is read from the log at its own offset whenever its socket takes more. A stalled client costs one socket.
"""

from __future__ import annotations

import socket

from ...log.reader import LogReader
from ...model.sessions.controls import Actor
from ...wire import keeper_frames

_OUTBOX_MAX = 1 << 20  # answers and events for a client that does not read; past it the channel is closed
_PUMP_BYTES = 256 << 10  # log read per turn for a lagging client: others get their turn in between
_COPIED_BYTES = 4096  # up to here one string is quicker to send than two: an echo is one byte
_SEND_BUFFER = 1 << 20  # lets a flood reach a busy client in few wake-ups


class Channel:
    """State of one client's connection; the keeper's loop drives it."""

    __slots__ = (
        "acks",
        "actor",
        "at",
        "attach",
        "barred",
        "client",
        "corked",
        "decoder",
        "due",
        "fd",
        "grants",
        "host",
        "key",
        "muted",
        "outbox",
        "paused",
        "process",
        "refusal",
        "rights",
        "since",
        "size",
        "sock",
        "to",
        "until",
        "via",
        "want_write",
        "watch",
    )

    def __init__(self, sock: socket.socket, key: str, due: float = 0.0) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self.sock, self.fd, self.key = sock, sock.fileno(), key
        self.decoder = keeper_frames.Decoder()
        self.actor: Actor | None = None  # unknown until HELLO
        self.due = due  # the moment by which that must have come
        self.host = self.attach = False
        self.acks = True
        self.rights: frozenset[str] = frozenset()
        self.grants: tuple[str, ...] = ()  # under which it was admitted
        self.process: tuple[int, int] | None = None  # pid and start time of its client, where the host knows them
        self.until = 0.0  # the time of day at which its rights end; 0: they do not
        self.barred = 0  # the epoch at which it lost the controls, until it says that it knows
        self.refusal = b""  # the newest refusal that waits for the outbox to empty
        self.client = self.via = ""
        self.since = 0.0
        self.at = self.to = -1  # -1: not reading
        self.watch = -1
        self.size: tuple[int, int] | None = None
        self.outbox = bytearray()
        self.corked = False  # what it is told waits until it is known whether that holds
        self.paused = False  # it typed while the input queue was full; the host is told instead of not read
        self.want_write = self.muted = False  # what the loop's epoll was told

    def send(self, data: bytes) -> None:
        """Send or keep; raises ConnectionError when the client has let too much pile up or is gone."""
        if not self.outbox and not self.corked:
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                sent = 0
            if sent == len(data):
                return
            data = data[sent:]
        self.outbox += data
        if len(self.outbox) > _OUTBOX_MAX + len(data):
            raise ConnectionError("the client does not read")

    def refuse(self, data: bytes) -> None:
        """Send a refusal, or keep the newest: a client that floods and does not read costs one."""
        if self.outbox:
            self.refusal = data
        else:
            self.send(data)

    @property
    def mode(self) -> str:
        return "control" if "type" in self.rights else "watch"

    def follows(self, offset: int) -> bool:
        return self.at == offset and not self.outbox and self.at < self.to

    def send_chunk(self, offset: int, stream: int, data: bytes) -> None:
        """Hand over a live chunk that begins where this channel is."""
        if offset + len(data) > self.to:
            data = data[: self.to - offset]
        head = keeper_frames.output_head(offset, stream, len(data))
        self.at = offset + len(data)
        try:
            sent = self.sock.send(head + data) if len(data) < _COPIED_BYTES else self.sock.sendmsg((head, data))
        except BlockingIOError:
            self.at = offset  # nothing went out: it will be read from the log
            return
        if sent < len(head) + len(data):
            self.outbox += (head + data)[sent:]

    def flush(self) -> None:
        while self.outbox or self.refusal:
            if not self.outbox:
                self.outbox += self.refusal
                self.refusal = b""
            try:
                sent = self.sock.send(self.outbox)
            except BlockingIOError:
                return
            del self.outbox[:sent]

    def pump(self, log: LogReader, end: int) -> None:
        """Send what lies between this channel's place and the log's end, as far as the socket takes it."""
        self.flush()
        budget = _PUMP_BYTES
        goal = min(self.to, end)
        while not self.outbox and 0 <= self.at < goal and budget > 0:
            progressed = False
            for piece in log.pieces(self.at, goal):
                progressed = True
                size = piece.end - piece.offset
                budget -= size
                if piece.data is None:
                    self.send(keeper_frames.pair_frame(keeper_frames.GAP, piece.offset, piece.end))
                    budget = max(budget, 1)  # a gap costs nothing to send
                else:
                    self.send(keeper_frames.output_head(piece.offset, piece.stream, size) + piece.data)
                self.at = piece.end
                if self.outbox or budget <= 0:
                    break
            if not progressed:  # not on disk: lost to a full disk just now
                self.send(keeper_frames.pair_frame(keeper_frames.GAP, self.at, goal))
                self.at = goal
        if self.at >= self.to and self.to >= 0:
            self.send(keeper_frames.u64_frame(keeper_frames.END, self.at))
            self.at = self.to = -1
