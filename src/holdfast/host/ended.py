"""An ended session's channel: the same frames as a keeper's, served from the log on disk by a passing thread."""

from __future__ import annotations

import socket
import threading

from ..wire import frames
from .session import Session

_RECV_BYTES = 4096


def serve(session: Session) -> int:
    """A descriptor on which READ works as with a keeper; anything that acts is refused."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=_converse, args=(session, ours), daemon=True, name="ended").start()
    return theirs.detach()


def _converse(session: Session, sock: socket.socket) -> None:
    decoder = frames.Decoder()
    start, end = session.reader.bounds()
    welcome = {
        "v": frames.VERSION, "session": session.id, "generation": session.manifest["generation"], "keeper": None,
        "pid": None, "exit": session.exit, "output": {"start": start, "end": end, "durable": end},
        "size": list(session.size), "controls": session.controls, "attached": [],
    }  # fmt: skip
    with sock:
        try:
            sock.sendall(frames.message(frames.WELCOME, welcome))
            while data := sock.recv(_RECV_BYTES):
                for kind, payload in decoder.feed(data):
                    if kind == frames.READ:
                        _stream(session, sock, *frames.parse_pair(payload))
                    elif kind == frames.INPUT:
                        error = {
                            "code": "conflict",
                            "message": "the session has ended",
                            "hint": "hold restart",
                        }
                        seq = frames.parse_input(payload)[0]
                        sock.sendall(frames.message(frames.RESULT, {"seq": seq, "error": error}))
        except (OSError, frames.ProtocolError):
            return


def _stream(session: Session, sock: socket.socket, at: int, to: int) -> None:
    end = session.reader.bounds()[1]
    for piece in session.reader.pieces(at, min(to, end)):
        if piece.data is None:
            sock.sendall(frames.pair_frame(frames.GAP, piece.offset, piece.end))
        else:
            sock.sendall(frames.output_head(piece.offset, piece.stream, len(piece.data)) + piece.data)
        at = piece.end
    sock.sendall(frames.u64_frame(frames.END, max(at, min(to, end))))
