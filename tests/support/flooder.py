"""An agent that types without end, as a process of its own: `python -m tests.support.flooder HOME SESSION BYTES [deaf]`.

It takes free controls by typing and goes on typing when it has lost them, as fast as it is answered. Told of a loss it
says so (`seen`) and types on. SIGTERM makes it stop, wait for what is unanswered, and print how many bytes were accepted.
`deaf`: it never reads and never says that it knows; it stops itself in the middle, goes on when continued, and ends.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import Any

from holdfast.model.home import Home
from holdfast.wire import keeper_frames
from tests.support.keeperline import KeeperLine
from tests.support.ownkeeper import AGENT

BYTE = b"a"
_WINDOW = 64  # frames without an answer: a flood, but one that lets others be heard on a slow machine
_DEAF_FRAMES = 300


def flood(line: KeeperLine, size: int) -> int:
    """Type until told to stop; how many bytes were accepted."""
    stop, wake = os.pipe2(os.O_NONBLOCK)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(wake)
    stopping = False
    window = _WINDOW if size == 1 else 4
    decoder, sock = keeper_frames.Decoder(), line.sock
    sock.setblocking(False)
    sent = answered = accepted = 0
    out = bytearray()
    while out or not stopping or answered < sent:
        while not stopping and sent - answered < window and len(out) < 1 << 18:
            sent += 1
            out += keeper_frames.input_frame(sent, 0, BYTE * size)
        readable, writable, _ = select.select([sock.fileno(), stop], [sock.fileno()] if out else [], [], 60)
        if stop in readable:
            os.read(stop, 64)
            stopping = True
        if writable:
            try:
                del out[: sock.send(out)]
            except BlockingIOError:
                pass
        if sock.fileno() not in readable:
            continue
        data = sock.recv(65536)
        if not data:
            break
        for kind, payload in decoder.feed(data):
            if kind == keeper_frames.ACK:
                answered = max(answered, keeper_frames.parse_ack(payload)[0])
                accepted += size
            elif kind == keeper_frames.RESULT:
                answered = max(answered, int(keeper_frames.parse_json(payload).get("seq") or 0))
            elif kind == keeper_frames.EVENT:
                out += knows(keeper_frames.parse_json(payload))
    return accepted


def knows(event: dict[str, Any]) -> bytes:
    """What it says when it hears that it does not hold the controls."""
    if event["event"] != "controls" or event["controls"]["holder"] == AGENT["operator"]:
        return b""
    return keeper_frames.message(keeper_frames.ACT, {"op": "seen", "epoch": event["controls"]["epoch"]})


def deaf(line: KeeperLine, size: int) -> None:
    for n in range(1, _DEAF_FRAMES):
        if n == _DEAF_FRAMES // 2:
            os.kill(os.getpid(), signal.SIGSTOP)
        line.sock.sendall(keeper_frames.input_frame(n, 0, BYTE * size))


def main() -> None:
    home, session, size = Home(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with KeeperLine(home, session, **AGENT, attach=True) as line:
        if sys.argv[4:] == ["deaf"]:
            deaf(line, size)
        else:
            sys.stdout.write(f"{flood(line, size)}\n")


if __name__ == "__main__":
    main()
