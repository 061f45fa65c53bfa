"""A channel to the log of a session whose keeper does not answer."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from holdfast.host.channels import log_channel
from holdfast.host.sessions.session import Session
from holdfast.host.sessions.state import State
from holdfast.model.home import Home
from holdfast.wire import keeper_frames


async def test_a_reader_of_a_silent_session_is_let_go_of_when_the_keeper_is_heard_again(tmp_path: Path) -> None:
    manifest = {"id": "ses_a", "name": "a", "generation": 1, "size": [80, 24]}
    session = Session(Home(str(tmp_path)).session("ses_a"), manifest)
    session.move_to(State.DISCONNECTED)
    loop = asyncio.get_running_loop()
    with socket.socket(fileno=log_channel.serve(session)) as line:
        line.setblocking(False)
        assert await asyncio.wait_for(loop.sock_recv(line, 65536), 20)  # its welcome
        await loop.sock_sendall(line, keeper_frames.pair_frame(keeper_frames.READ, 0, 10))
        session.touch()  # something else: it is as silent as before
        session.move_to(State.LOST)
        session.touch()
        assert await asyncio.wait_for(loop.sock_recv(line, 65536), 20) == b""  # closed, without an END
