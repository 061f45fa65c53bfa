"""What a keeper says on one breath is taken in the order in which it said it."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

from holdfast.host.observe import look
from holdfast.host.sessions.keeper_link import KeeperLink
from holdfast.host.sessions.registry import Registry
from holdfast.host.sessions.session import Session
from holdfast.host.sessions.state import Event, State
from holdfast.host.sessions.zygote import Zygote
from holdfast.model.home import Home
from holdfast.wire import keeper_frames

Json = dict[str, Any]
FREE: Json = {"holder": None, "kind": None, "name": None, "epoch": 0, "since": None}
HELD: Json = {"holder": "op_a", "kind": "human", "name": "ada", "epoch": 1, "since": 1.0}
ENDED: Json = {"code": 7, "signal": None, "known": True, "at": 1.0, "by": None}


def status(**more: Any) -> Json:
    return {"exit": None, "controls": FREE, "attached": [], "size": [80, 24], "output": {"end": 0}, **more}


class Keeper:
    """The far end of a line."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock, self._decoder = sock, keeper_frames.Decoder()

    async def asked(self) -> Json:
        """The next thing that is asked, after HELLO."""
        loop = asyncio.get_running_loop()
        while True:
            for kind, payload in self._decoder.feed(await loop.sock_recv(self._sock, 65536)):
                if kind == keeper_frames.ACT:
                    return keeper_frames.parse_json(payload)

    async def says(self, *said: tuple[int, Json]) -> None:
        data = b"".join(keeper_frames.message(kind, value) for kind, value in said)
        await asyncio.get_running_loop().sock_sendall(self._sock, data)


async def test_an_answer_that_is_older_than_an_event_behind_it_does_not_undo_it(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    session = Session(home.session("ses_a"), {"id": "ses_a", "name": "a", "generation": 1, "size": [80, 24]})
    os.makedirs(session.folder.path)
    registry = Registry(home, Zygote(home.roles), lambda session, event: None, lambda session: None)
    ours, theirs = socket.socketpair()
    with theirs:
        keeper, link = Keeper(theirs), KeeperLink(ours)
        link.hail({})
        await keeper.says((keeper_frames.WELCOME, status(keeper=1, pid=2)))
        assert await link.welcomed()
        session.move_to(State.DISCONNECTED)
        registry.lines.happened(session, Event.WELCOMED, link)
        asking = asyncio.create_task(look.end(session))
        number = (await keeper.asked())["id"]
        taken: Json = {"event": "controls", "controls": HELD}
        await keeper.says((keeper_frames.RESULT, {"id": number, "ok": status()}), (keeper_frames.EVENT, taken))
        await asking
        assert session.controls == HELD
        asking = asyncio.create_task(look.end(session))
        number = (await keeper.asked())["id"]
        over = [(keeper_frames.EVENT, {"event": kind, "exit": ENDED, "end": 0}) for kind in ("exit", "ended")]
        await keeper.says((keeper_frames.RESULT, {"id": number, "ok": status()}), *over)
        await asking
        assert (session.state, session.exit) == ("exited", ENDED)
        link.close()
        await asyncio.sleep(0)
