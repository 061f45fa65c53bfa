"""What a keeper's news does to a session: the table's effects, carried out."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.sessions import state
from holdfast.host.sessions.connect import Lines
from holdfast.host.sessions.keeper_link import KeeperLink
from holdfast.host.sessions.session import Session
from holdfast.host.sessions.state import Effect, Event, State
from holdfast.host.sessions.zygote import Zygote
from holdfast.model.home import Home
from holdfast.wire import keeper_frames
from tests.support.home import until_async

Json = dict[str, Any]
FREE: Json = {"holder": None, "kind": None, "name": None, "epoch": 0, "since": None}
STATUS: Json = {
    "exit": None,
    "controls": FREE,
    "attached": [],
    "size": [80, 24],
    "output": {"end": 0},
    "keeper": 1,
    "pid": 2,
}


class Far:
    """A session on a line whose other end is ours, and what was told of it."""

    def __init__(self, home: Home) -> None:
        manifest = {"id": "ses_a", "name": "a", "generation": 1, "size": [80, 24], "limits": {"pids": 5}, "token": "t"}
        self.session = Session(home.session("ses_a"), manifest)
        os.makedirs(self.session.folder.path)
        self.told: list[str] = []
        self.lines = Lines(home, Zygote(home.roles), lambda session, event: self.told.append(event["event"]))
        self.session.move_to(State.DISCONNECTED)

    async def welcome(self, **more: object) -> socket.socket:
        ours, theirs = socket.socketpair()
        link = KeeperLink(ours)
        theirs.sendall(keeper_frames.message(keeper_frames.WELCOME, {**STATUS, **more}))
        assert await link.welcomed()
        self.lines.happened(self.session, Event.WELCOMED, link)
        theirs.settimeout(20)
        return theirs


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    one = Far(Home(str(tmp_path)))
    yield one
    if one.session.link is not None:
        one.session.link.close()
        one.session.move_to(State.REMOVED)
        await asyncio.sleep(0)
    one.lines.close()


def test_every_effect_is_carried_out_by_the_lines_or_by_the_reporter(far: Far) -> None:
    assert set(far.lines.effects) | state.REPORTERS == set(Effect)
    assert not set(far.lines.effects) & state.REPORTERS


async def test_an_event_that_the_state_excludes_changes_nothing(far: Far, caplog: pytest.LogCaptureFixture) -> None:
    assert far.lines.happened(far.session, Event.REMOVE_ASKED) == ()
    assert far.session.life is State.DISCONNECTED
    assert "defect" in caplog.text


async def test_a_stop_that_could_not_be_sent_is_sent_once_the_keeper_answers(far: Far) -> None:
    far.session.remember(stopped=True)
    with await far.welcome() as keeper:
        ((kind, payload),) = keeper_frames.Decoder().feed(keeper.recv(65536))
    assert (kind, keeper_frames.parse_json(payload)["op"]) == (keeper_frames.ACT, "stop")


async def test_a_stop_under_way_goes_on_as_it_was_asked(far: Far) -> None:
    far.session.remember(stopped=True)
    with await far.welcome(stopping=True) as keeper:
        keeper.setblocking(False)
        with pytest.raises(BlockingIOError):
            keeper.recv(1)


async def test_a_keeper_that_does_not_answer_in_time_is_silent_until_it_is_heard(
    far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.host.sessions.keeper_link.KEEPER_ANSWER_S", 0.01)
    with await far.welcome() as keeper:
        with pytest.raises(Exception, match="does not answer"):
            await far.session.line.act("status")
        assert (far.session.life, far.session.silent, far.session.state) == (State.UNANSWERED, True, "live")
        changed = far.session.changed
        keeper.sendall(keeper_frames.u64_frame(keeper_frames.GREW, 1))
        await asyncio.wait_for(changed.wait(), 20)
        assert (far.session.life, far.session.silent) == (State.CONNECTED, False)


async def test_an_old_line_tells_nothing_of_the_next_generation(far: Far) -> None:
    with await far.welcome() as keeper:
        link = far.session.line
        said = {"event": "ended", "exit": {"code": 0, "signal": None, "known": True, "at": 1.0, "by": None}}
        keeper.sendall(keeper_frames.message(keeper_frames.EVENT, said))
        while far.session.live:
            await asyncio.wait_for(far.session.changed.wait(), 20)
        far.session.move_to(State.STARTING)
        far.session.exit = None
        keeper.sendall(keeper_frames.message(keeper_frames.EVENT, said))
        await until_async(lambda: far.told.count("ended") == 2)
        assert (far.session.life, far.session.exit, far.told.count("gone")) == (State.STARTING, None, 1)
        link.close()
        far.session.move_to(State.REMOVED)
        await asyncio.sleep(0)
