"""A program that a real-time signal ended: Python has no name for most of them, and the session ends like any other."""

from __future__ import annotations

import signal
from typing import Any

from tests.support.home import HomeForTests, until

DEADLINE_S = 60.0
NUMBER = int(signal.SIGRTMIN) + 3


def test_a_program_ended_by_a_real_time_signal_is_told_as_such(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", f"kill -{NUMBER} $$")
    found: Any = s.wait(exit=True, timeout=DEADLINE_S)
    assert (found.event, found.detail["exit"]["signal"]) == ("exit", "SIGRTMIN+3")
    until(lambda: s.status().state == "exited", timeout=DEADLINE_S)


def test_its_code_is_what_a_shell_would_report(hold: HomeForTests) -> None:
    assert hold("run", "--", "sh", "-c", f"kill -{NUMBER} $$").code == 128 + NUMBER


def test_a_command_whose_shell_it_ended_says_so(hold: HomeForTests) -> None:
    shell = hold.run("bash", "--norc", "--noprofile")
    shell.wait(input=True, timeout=DEADLINE_S)
    done = shell.exec(f"kill -{NUMBER} $$", timeout=DEADLINE_S)
    assert (done.state, done.exit_code) == ("shell_ended", 128 + NUMBER)
