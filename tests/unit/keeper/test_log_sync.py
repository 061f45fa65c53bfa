"""Output reaches the disk by itself, also what is printed while an earlier part is on its way there."""

from __future__ import annotations

import os
import threading
import time
import tty
from pathlib import Path

import pytest

from holdfast.keeper.keeper import Keeper
from holdfast.keeper.start.program import open_ends
from holdfast.keeper.start.take_session import listen
from holdfast.model import limits
from holdfast.model.home import SessionFolder

_DEADLINE_S = 60.0


def test_what_is_printed_during_a_sync_is_synced_without_more_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SYNC_DELAY_S", 0.01)
    slow, real = threading.Event(), os.fdatasync

    def fdatasync(fd: int) -> None:
        assert slow.wait(_DEADLINE_S)
        real(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    program, _ = open_ends(pipes=False)
    tty.setraw(program.slave)
    folder = SessionFolder(str(tmp_path))
    about = {"id": "ses_sync", "token": "t", "generation": 1, "kind": "terminal", "size": [80, 24]}
    keeper = Keeper(folder, about, program, listen(folder))
    deadline = time.monotonic() + _DEADLINE_S

    def turn() -> None:
        assert time.monotonic() < deadline, (keeper.log.end, keeper.log.durable)
        wait = keeper._settle()
        keeper.turn(0.1 if wait is None else min(wait, 0.1))

    os.write(program.slave, b"one")
    while not keeper.syncing.since:
        turn()
    os.write(program.slave, b"two")
    while keeper.log.end < 6:
        turn()
    slow.set()
    while keeper.log.durable < 6:
        turn()
    keeper.log.close()
    keeper.listener.close()
    keeper.poll.close()
    for fd in (program.master, program.slave, keeper.sync_read, keeper.sync_write, keeper.wake_read, keeper.wake_write):
        os.close(fd)
