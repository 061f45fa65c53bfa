"""A channel to a session's log on disk: the same frames as a keeper's, served by a passing thread.

For a session that has ended, and for one that lives while its keeper does not answer. The latter's output is not over:
what is on disk is served, then the line waits, and it is closed without an END when the keeper is heard of again or is
gone. Whoever reads asks anew then, and goes on at the same offset.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
import threading

from ...wire import keeper_frames
from ..sessions.session import Session

_RECV_BYTES = 4096


def serve(session: Session) -> int:
    """A descriptor on which READ works as with a keeper; anything that acts is refused."""
    ours, theirs = socket.socketpair()
    # Whether it is over is told as it is now: a keeper that answers a moment later has not ended by that.
    silent = session.live
    heard = os.eventfd(0, os.EFD_CLOEXEC)
    loop = asyncio.get_running_loop()
    telling = loop.create_task(_tell_when_heard(session, heard)) if silent else None

    def converse() -> None:
        try:
            _converse(session, ours, silent, heard)
        finally:
            with contextlib.suppress(RuntimeError):  # of a loop that has ended: the host leaves
                loop.call_soon_threadsafe(_close, heard, telling)

    threading.Thread(target=converse, daemon=True, name="ended").start()
    return theirs.detach()


async def _tell_when_heard(session: Session, heard: int) -> None:
    while session.silent:
        await session.changed.wait()
    os.eventfd_write(heard, 1)


def _close(heard: int, telling: asyncio.Task[None] | None) -> None:
    if telling is not None:
        telling.cancel()
    os.close(heard)


def _converse(session: Session, sock: socket.socket, silent: bool, heard: int) -> None:
    decoder = keeper_frames.Decoder()
    start, end = session.reader.bounds()
    welcome = {
        "v": keeper_frames.VERSION,
        "session": session.id,
        "generation": session.manifest["generation"],
        "keeper": None,
        "pid": None,
        "exit": session.exit,
        "output": {"start": start, "end": end, "durable": start if silent else end},
        "size": list(session.size),
        "controls": session.controls,
        "attached": [],
        "current": not silent,
    }
    with sock:
        try:
            sock.sendall(keeper_frames.message(keeper_frames.WELCOME, welcome))
            while data := sock.recv(_RECV_BYTES):
                for kind, payload in decoder.feed(data):
                    if kind == keeper_frames.READ:
                        complete = _stream(session, sock, *keeper_frames.parse_pair(payload), over=not silent)
                        if not complete and not _waited(sock, heard):
                            return
                    elif kind == keeper_frames.INPUT:
                        seq = keeper_frames.parse_input(payload)[0]
                        sock.sendall(
                            keeper_frames.message(keeper_frames.RESULT, {"seq": seq, "error": _refusal(silent)})
                        )
        except (OSError, keeper_frames.ProtocolError):
            return


def _refusal(silent: bool) -> dict[str, str]:
    if silent:
        return {"code": "conflict", "message": "the session's keeper does not answer", "hint": "hold status"}
    return {"code": "conflict", "message": "the session has ended", "hint": "hold restart"}


def _stream(session: Session, sock: socket.socket, at: int, to: int, *, over: bool) -> bool:
    """Send what is on disk of a range; whether that is all of it, or all there will ever be (`over`)."""
    end = session.reader.bounds()[1]
    for piece in session.reader.pieces(at, min(to, end)):
        if piece.data is None:
            sock.sendall(keeper_frames.pair_frame(keeper_frames.GAP, piece.offset, piece.end))
        else:
            sock.sendall(keeper_frames.output_head(piece.offset, piece.stream, len(piece.data)) + piece.data)
        at = piece.end
    if not over and to > end:
        return False
    sock.sendall(keeper_frames.u64_frame(keeper_frames.END, max(at, min(to, end))))
    return True


def _waited(sock: socket.socket, heard: int) -> bool:
    """Wait while the keeper is silent: true when the client asks for something else, false when the line is to end."""
    poll = select.poll()
    for fd in (sock.fileno(), heard):
        poll.register(fd, select.POLLIN)
    return heard not in [fd for fd, _ in poll.poll()]
