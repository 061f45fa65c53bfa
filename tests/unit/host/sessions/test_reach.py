"""Getting a line to a keeper: told by its answer or by its end, not found at the next look."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.host.sessions import late_start, reach
from holdfast.host.sessions import session as sessions
from holdfast.host.sessions.session import keeper_gone
from holdfast.host.sessions.state import State
from holdfast.model.home import Home
from holdfast.system import kernel
from holdfast.system.atomic_files import write_json
from holdfast.wire import keeper_frames
from tests.support.home import until_async
from tests.unit.host.sessions.test_connect import STATUS, Far

SOON_S = 20.0
HOLDS_LOCK = "import fcntl,sys,time; f=open(sys.argv[1],'a'); fcntl.flock(f,2); print(flush=True); time.sleep(1000)"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look by the clock within a test: what is not told is not found."""
    for name in ("_PAUSE_S", "_LOOK_S"):
        monkeypatch.setattr(reach, name, 1000.0)
    monkeypatch.setattr(reach, "_PAUSES_S", ())
    monkeypatch.setattr(sessions, "_UNTOLD_S", 1000.0)


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    one = Far(Home(str(tmp_path)))
    yield one
    if one.session.link is not None:
        one.session.link.close()
        one.session.move_to(State.REMOVED)
        await asyncio.sleep(0)
    one.lines.close()


class Listening:
    """A keeper's lock and address, held by this test."""

    def __init__(self, far: Far) -> None:
        self._lock = os.open(far.session.folder.keeper_lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.bind(far.session.folder.keeper_socket)
        self.socket.listen(4)
        self.socket.setblocking(False)

    async def accept(self) -> socket.socket:
        return (await asyncio.get_running_loop().sock_accept(self.socket))[0]

    def close(self) -> None:
        self.socket.close()
        os.close(self._lock)


def keeping(far: Far) -> subprocess.Popen[bytes]:
    """A process that holds the lock and has named itself there, and listens nowhere."""
    folder = far.session.folder
    child = subprocess.Popen([sys.executable, "-c", HOLDS_LOCK, folder.keeper_lock], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout as said:
        said.readline()
    Path(folder.keeper_lock).write_text(
        f'{{"pid": {child.pid}, "started": {kernel.start_time(child.pid)}, "generation": 1}}'
    )
    return child


async def test_a_keeper_that_answers_late_is_heard_on_the_same_line(far: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach, "KEEPER_ANSWER_S", 0.05)
    listening = Listening(far)
    try:
        await asyncio.wait_for(far.lines.connect(far.session), SOON_S)
        assert far.session.life is State.DISCONNECTED
        changed = far.session.changed
        with await listening.accept() as line:
            await asyncio.sleep(0)
            line.sendall(keeper_frames.message(keeper_frames.WELCOME, STATUS))
            await asyncio.wait_for(changed.wait(), SOON_S)
            assert far.session.connected
            with pytest.raises(BlockingIOError):
                listening.socket.accept()  # there was one connection, not one for each look
    finally:
        listening.close()


async def test_the_end_of_a_keeper_without_a_line_is_told_at_once(far: Far) -> None:
    child = keeping(far)
    try:
        await asyncio.wait_for(far.lines.connect(far.session), SOON_S)
        assert (far.session.life, far.told) == (State.DISCONNECTED, [])
        child.kill()
        await until_async(lambda: far.session.life is State.LOST)
        assert far.told == ["gone"]
    finally:
        child.kill()
        child.wait()


async def test_the_end_of_a_stopped_keeper_with_a_final_record_is_an_end(far: Far) -> None:
    child = keeping(far)
    try:
        await asyncio.wait_for(far.lines.connect(far.session), SOON_S)
        done = {"code": 0, "signal": None, "known": True, "at": 1.0, "by": None}
        write_json(far.session.folder.exit, {"generation": 1, "ended": True, "exit": done})  # told by the folder
        await until_async(lambda: far.session.life is State.ENDED)
        assert (far.session.exit, far.session.reach) == (done, None)
    finally:
        child.kill()
        child.wait()


async def test_a_keeper_that_begins_to_listen_is_told_by_its_folder(far: Far) -> None:
    child = keeping(far)
    try:
        await asyncio.wait_for(far.lines.connect(far.session), SOON_S)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(far.session.folder.keeper_socket)
        listening.listen(4)
        listening.settimeout(SOON_S)
        asking = asyncio.create_task(far.lines.connect(far.session))
        line, _ = await asyncio.to_thread(listening.accept)
        with line, listening:
            line.sendall(keeper_frames.message(keeper_frames.WELCOME, STATUS))
            await asyncio.wait_for(asking, SOON_S)
            assert far.session.connected
    finally:
        child.kill()
        child.wait()


async def test_the_end_of_a_keeper_is_waited_for_by_its_pidfd(far: Far) -> None:
    child = keeping(far)
    waiting = asyncio.create_task(keeper_gone(far.session.folder, SOON_S))
    await asyncio.sleep(0)
    assert not await keeper_gone(far.session.folder, 0.01)
    child.kill()
    assert await asyncio.wait_for(waiting, SOON_S)
    child.wait()


async def test_a_start_of_an_earlier_host_is_found_when_it_is_taken_and_when_none_is_left(far: Far) -> None:
    spare = subprocess.Popen(["sleep", "1000"])
    named = [(spare.pid, kernel.start_time(spare.pid))]
    far.session.move_to(State.START_ORPHANED)
    waiting = asyncio.create_task(late_start.arrive(far.lines, far.session, lambda: named))
    await asyncio.sleep(0)
    spare.kill()
    spare.wait()
    await asyncio.wait_for(waiting, SOON_S)
    assert (far.session.life, far.told) == (State.LOST, ["gone"])

    far.session.move_to(State.START_ORPHANED)
    mine = [(os.getpid(), kernel.start_time(os.getpid()))]
    waiting = asyncio.create_task(late_start.arrive(far.lines, far.session, lambda: mine))
    await asyncio.sleep(0)
    listening = Listening(far)  # its lock, then its address: the folder tells
    try:
        await asyncio.wait_for(waiting, SOON_S)
        with await listening.accept() as line:
            line.sendall(keeper_frames.message(keeper_frames.WELCOME, STATUS))
            await until_async(lambda: far.session.connected)
    finally:
        listening.close()
