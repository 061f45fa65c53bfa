"""Policies of sessions that a host could not reach at first: idle ones are reaped, ended ones restarted, all the same."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from holdfast.client._sync.host import Session
from tests.crash.test_handed_start import spare_of
from tests.support.home import HOLD, HomeForTests, alive, until, wait_fd

DEADLINE_S = 60.0
Json = dict[str, Any]


def listed(hold: HomeForTests, name: str) -> Json:
    (found,) = [s for s in hold.host.call("ls", all=True) if s["name"] == name]
    return dict(found)


def shell(hold: HomeForTests) -> Session:
    return hold.run("bash", "--norc", "--noprofile", name="idle", idle_ttl="2s")


def test_a_session_that_was_silent_when_the_host_came_is_reaped_when_it_is_idle(hold: HomeForTests) -> None:
    keeper = hold.keeper_pid(shell(hold))
    os.kill(keeper, signal.SIGSTOP)
    hold.kill_daemon()
    assert listed(hold, "idle")["pid"] is None
    os.kill(keeper, signal.SIGCONT)
    until(lambda: listed(hold, "idle")["state"] == "reaped", timeout=DEADLINE_S)


def test_a_session_that_was_silent_for_a_while_is_reaped_when_it_is_idle(hold: HomeForTests) -> None:
    keeper = hold.keeper_pid(shell(hold))
    os.kill(keeper, signal.SIGSTOP)
    for _ in range(2):  # each takes as long as the host waits for an answer; its own watch has asked meanwhile
        assert listed(hold, "idle")["pid"] is None
    os.kill(keeper, signal.SIGCONT)
    until(lambda: listed(hold, "idle")["state"] == "reaped", timeout=DEADLINE_S)


def test_a_program_that_ended_without_a_host_and_left_others_running_is_restarted(
    hold: HomeForTests, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    left = "trap '' HUP; sleep 1000 &"
    session = hold.run("bash", "-c", f"{left} read -r line < {gate}; exit 3", name="again", restart="always")
    first = until(lambda: len((v := session.status()).processes) == 2 and v, timeout=DEADLINE_S)
    ended = os.pidfd_open(first.pid)
    hold.kill_daemon()
    fd = os.open(gate, os.O_RDWR)  # which does not wait for who reads it
    os.write(fd, b"\n")
    wait_fd(ended, DEADLINE_S)
    os.close(fd)
    until(lambda: listed(hold, "again")["generation"] == 2, timeout=DEADLINE_S)
    assert not [p for p in first.processes if alive(p.pid)]


def test_a_start_that_is_late_for_a_new_host_is_neither_given_up_nor_done_twice(
    hold: HomeForTests, tmp_path: Path
) -> None:
    """Its spare is stopped for longer than the new host waits; a restart policy would have begun another one."""
    about = until(lambda: (h := hold.host.call("ping")["host"])["zygote_pid"] and h, timeout=DEADLINE_S)
    spare = spare_of(int(about["zygote_pid"]))
    hold.host.close()
    os.kill(spare, signal.SIGSTOP)
    handed_over(hold, "sh", "-c", f"echo begun >> {tmp_path}/marks; exec sleep 1000")
    hold.kill_daemon()
    seen = listed(hold, "late")  # answered when the host has waited its time
    assert (seen["state"], seen["pid"]) == ("live", None)
    assert "hangs" in seen["activity"]["evidence"]
    os.kill(spare, signal.SIGCONT)
    until(lambda: listed(hold, "late")["pid"], timeout=DEADLINE_S)
    marks = tmp_path / "marks"
    until(lambda: marks.exists() and marks.read_text(), timeout=DEADLINE_S)
    assert listed(hold, "late")["generation"] == 1
    assert marks.read_text() == "begun\n"


def handed_over(hold: HomeForTests, *command: str) -> None:
    """Asked for by somebody who is gone before it happens."""
    words = [*HOLD, "run", "-d", "-n", "late", "--restart", "always", "--", *command]
    with subprocess.Popen(words, env=hold.env) as client:
        until(lambda: list((hold.path / "sessions").glob("*/manifest.json")), timeout=DEADLINE_S)
        hold.host.call("ping")  # it was handed over in the same breath as that was written
        client.kill()
