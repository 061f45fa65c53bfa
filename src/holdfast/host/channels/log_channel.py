"""A channel to a session's log on disk: the same frames as a keeper's, served by a passing thread.

For a session that has ended, and for one that lives while its keeper does not answer. The latter's output is not over:
what is on disk is served, then the line waits, and it is closed without an END when the keeper is heard of again or is
gone. Whoever reads asks anew then, and goes on at the same offset.
"""

from __future__ import annotations

import itertools
import select
import socket
import threading

from ...wire import keeper_frames
from ..sessions.session import Session

_RECV_BYTES = 4096
# Between two looks whether the keeper answers. One that is just coming or going does so within milliseconds, and one
# that is stopped is itself looked at every two seconds.
_LOOKS_S, _LOOK_S = (0.005, 0.02, 0.1), 0.5


def serve(session: Session) -> int:
    """A descriptor on which READ works as with a keeper; anything that acts is refused."""
    ours, theirs = socket.socketpair()
    # Whether it is over is told as it is now: a keeper that answers a moment later has not ended by that.
    threading.Thread(target=_converse, args=(session, ours, session.live), daemon=True, name="ended").start()
    return theirs.detach()


def _converse(session: Session, sock: socket.socket, silent: bool) -> None:
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
                        if not complete and not _waited(session, sock):
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


def _waited(session: Session, sock: socket.socket) -> bool:
    """Wait while the keeper is silent: true when the client asks for something else, false when the line is to end."""
    for pause in itertools.chain(_LOOKS_S, itertools.repeat(_LOOK_S)):
        if not session.silent:
            return False
        if select.select((sock,), (), (), pause)[0]:
            return True
    raise AssertionError("unreachable")
