"""A host killed with a start on its way: the next one tells neither a lost session that comes up, nor one that never will."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import HOLD, HomeForTests, alive, until, wait_fd

DEADLINE_S = 60.0
Json = dict[str, Any]


def spare_of(zygote: int) -> int:
    """The process that waits for the next start, and has all it needs."""

    def look() -> int:
        with contextlib.suppress(OSError):  # a child that has ended since is looked past the next time
            for name in _children(str(zygote)).split():
                if Path(f"/proc/{name}/comm").read_text() == "hold-spare\n" and _children(name):
                    return int(name)
        return 0

    return int(until(look, timeout=DEADLINE_S))


def _children(pid: str) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def killed(pid: int) -> None:
    fd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    wait_fd(fd, timeout=DEADLINE_S)


@pytest.fixture
def handed(hold: HomeForTests) -> tuple[int, int]:
    """The zygote and the spare, stopped with a start that it has not taken; their host is dead, and another one serves."""
    zygote = int(until(lambda: hold.host.call("ping")["host"]["zygote_pid"], timeout=DEADLINE_S))
    spare = spare_of(zygote)
    os.kill(spare, signal.SIGSTOP)
    with subprocess.Popen([*HOLD, "run", "-d", "-n", "late", "--", "sleep", "1000"], env=hold.env) as client:
        until(lambda: list((hold.path / "sessions").glob("*/manifest.json")), timeout=DEADLINE_S)
        hold.host.call("ping")  # it was handed over in the same breath as that was written
        client.kill()
    hold.kill_daemon()
    hold.daemon_pid()
    assert alive(zygote)
    assert alive(spare)
    return zygote, spare


def late(hold: HomeForTests) -> Json:
    """What became of it. While that is open it is told as live, with no pid yet: a slow machine is later than `ls` waits."""

    def settled() -> Json | None:
        (found,) = hold.host.call("ls", all=True)
        return dict(found) if found["pid"] or found["state"] != "live" else None

    return dict(until(settled, timeout=DEADLINE_S))


def test_a_start_that_happens_after_all_is_a_live_session(hold: HomeForTests, handed: tuple[int, int]) -> None:
    os.kill(handed[1], signal.SIGCONT)
    found = late(hold)
    assert (found["name"], found["state"]) == ("late", "live")
    assert alive(found["pid"])
    os.kill(found["pid"], signal.SIGTERM)
    told: Json = hold.host.session("late").wait_for("exit", None, DEADLINE_S)
    assert told["detail"]["exit"]["signal"] == "SIGTERM"


def test_a_start_whose_spare_is_killed_is_taken_by_the_next_one(hold: HomeForTests, handed: tuple[int, int]) -> None:
    killed(handed[1])
    found = late(hold)
    assert (found["name"], found["state"]) == ("late", "live")
    assert hold.keeper_pid(hold.host.session("late")) != handed[1]


def test_a_start_that_nobody_is_left_to_take_is_told_as_lost(hold: HomeForTests, handed: tuple[int, int]) -> None:
    for pid in handed:
        killed(pid)
    found = late(hold)
    assert (found["name"], found["state"]) == ("late", "lost")
