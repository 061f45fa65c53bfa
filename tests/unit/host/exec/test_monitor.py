"""A command under watch: found at its end by its mark, and looked at only where none comes."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.exec import monitor
from holdfast.host.exec.command import Command
from holdfast.host.exec.marks import mark
from holdfast.host.exec.results_file import Results
from holdfast.host.sessions.keeper_link import KeeperLink
from holdfast.host.sessions.session import Session
from holdfast.host.sessions.state import State
from holdfast.log.layout import TERMINAL
from holdfast.log.writer import OutputLog
from holdfast.model.errors import HoldfastError
from holdfast.model.home import Home
from holdfast.wire import keeper_frames

TOKEN = "0123456789abcdef" * 2
SOON_S = 30.0


class Shell:
    """A session whose shell was just typed a command: its log is real, the keeper's end of the line is ours."""

    def __init__(self, tmp_path: Path) -> None:
        manifest = {"id": "ses_a", "name": "a", "generation": 1, "size": [80, 24], "kind": "terminal"}
        self.session = Session(Home(str(tmp_path)).session("ses_a"), manifest)
        ours, self.keeper = socket.socketpair()
        self.session.move_to(State.CONNECTED, KeeperLink(ours))
        self.looks = 0
        self.looked = asyncio.Event()
        self._log = OutputLog(self.session.folder.out, 0, 1 << 20, 1 << 20)
        record: dict[str, Any] = {
            "exec_id": "exe_a",
            "token": TOKEN,
            "shell": "bash",
            "shell_pid": 1,
            "state": "running",
            "exit_code": None,
            "from": 0,
            "start": None,
            "end": None,
            "cwd": None,
            "prompt": None,
            "started_at": time.time(),
        }
        self.command = Command(self.session, record, Results(self.session.folder.execs))
        self.command.begin_record()

    async def observe(self, session: Session, quick: bool) -> Any:
        self.looks += 1
        self.looked.set()
        raise HoldfastError("failed", "nothing is to be seen here", "")

    def prints(self, data: bytes) -> None:
        self._log.add(TERMINAL, data, time.time_ns() // 1000)
        self.keeper.sendall(keeper_frames.u64_frame(keeper_frames.GREW, self._log.end))

    def close(self) -> None:
        self.session.line.close()
        self.keeper.close()
        self._log.close()


async def test_what_was_typed_this_moment_is_not_looked_at_because_somebody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "SAMPLE_FIRST_S", 3 * SOON_S)  # however slow the machine is
    shell = Shell(tmp_path)
    command = shell.command
    monitor.Watching(shell.observe)._watch(command)
    await asyncio.sleep(0)  # its monitor waits for output
    with command.watched():
        for _ in range(10):
            await asyncio.sleep(0)
        shell.prints(mark("b", TOKEN) + b"hello\r\n" + mark("e", TOKEN) + b"$ ")
        async with asyncio.timeout(SOON_S):
            while command.running:
                await command.changed.wait()
    assert shell.looks == 0
    assert command.record["state"] == "exited"
    assert command.heard.part(command.record["start"], command.record["end"]) == b"hello\r\n"
    shell.close()


async def test_a_command_that_goes_on_is_looked_at_while_somebody_waits(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    command = shell.command
    monitor.Watching(shell.observe)._watch(command)
    await asyncio.sleep(0)
    with command.watched():
        async with asyncio.timeout(SOON_S):
            await shell.looked.wait()
    assert command.running
    assert command.task is not None
    command.task.cancel()
    shell.close()
