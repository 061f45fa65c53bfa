"""A keeper that does not answer in the moment a new host looks: whoever waits for its session hears how it went on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host, Session
from tests.support.home import HomeForTests, alive, until

DEADLINE_S = 60.0


class Waiting:
    """A wait for a session's end, beside the test."""

    def __init__(self, hold: HomeForTests, session: Session) -> None:
        self.found: list[Any] = []
        self._host = Host(str(hold.path))
        own = Session(self._host, session.id, session.name)  # without a look at it, which would ask the keeper anew
        self._thread = threading.Thread(
            target=lambda: self.found.append(own.wait(exit=True, timeout=DEADLINE_S)), daemon=True
        )
        self._thread.start()

    def result(self) -> Any:
        self._thread.join(DEADLINE_S + 30)
        self._host.close()
        return self.found[0]


def left_silent(hold: HomeForTests, session: Session) -> tuple[int, Waiting]:
    """Its keeper stopped, its host killed, and a new one that got no answer; the keeper's pid, and who waits."""
    keeper = hold.keeper_pid(session)
    os.kill(keeper, signal.SIGSTOP)
    hold.kill_daemon()
    assert not is_answered(hold, session)
    return keeper, Waiting(hold, session)


def is_answered(hold: HomeForTests, session: Session) -> bool:
    (found,) = [
        s for s in hold.host.call("ls", all=True) if s["id"] == session.id
    ]  # asks of what is known, and no keeper anew
    assert found["state"] == "live"
    return found["pid"] is not None


def test_a_keeper_that_was_silent_when_a_new_host_came_is_heard_once_it_answers(hold: HomeForTests) -> None:
    s = hold.run("sleep", "1000")
    program = s.status().pid
    assert program is not None
    keeper, waiting = left_silent(hold, s)
    os.kill(keeper, signal.SIGCONT)
    until(lambda: is_answered(hold, s), timeout=DEADLINE_S)
    os.kill(program, signal.SIGTERM)
    found = waiting.result()
    assert (found.event, found.detail["exit"]["signal"]) == ("exit", "SIGTERM")


def test_a_program_that_ended_while_its_keeper_was_silent_is_told_to_who_waits(hold: HomeForTests) -> None:
    s = hold.run("bash", "-c", "trap '' HUP; sleep 1000 & exec sleep 1001")  # the main program ends, its child goes on
    program = s.status().pid
    assert program is not None
    keeper, waiting = left_silent(hold, s)
    os.kill(program, signal.SIGTERM)
    os.kill(keeper, signal.SIGCONT)
    found = waiting.result()
    assert (found.event, found.detail["exit"]["signal"]) == ("exit", "SIGTERM")


def test_a_keeper_that_is_killed_while_it_was_silent_is_told_as_lost_to_who_waits(hold: HomeForTests) -> None:
    s = hold.run("sleep", "1000")
    program = s.status().pid
    assert program is not None
    keeper, waiting = left_silent(hold, s)
    os.kill(keeper, signal.SIGKILL)
    found = waiting.result()
    assert (found.event, found.detail["state"], found.detail["exit"]["known"]) == ("exit", "lost", False)
    os.kill(program, signal.SIGKILL)
    until(lambda: not alive(program), timeout=DEADLINE_S)


def test_a_command_goes_on_while_its_keeper_is_silent_and_is_told_when_it_ends(
    hold: HomeForTests, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    shell = hold.run("bash", "--norc", "--noprofile")
    shell.wait(input=True, timeout=DEADLINE_S)
    command = shell.exec(f"read -r code < {gate}; (exit $code)", timeout=0)
    keeper = hold.keeper_pid(shell)
    os.kill(keeper, signal.SIGSTOP)
    hold.kill_daemon()
    assert not is_answered(hold, shell)
    own = Session(hold.host, shell.id, shell.name)
    assert own.exec_result(command.exec_id).state == "running"  # nobody can tell, and nobody says that its shell ended
    os.kill(keeper, signal.SIGCONT)
    opened = os.open(gate, os.O_RDWR)  # which does not wait for who reads it
    os.write(opened, b"7\n")
    found = own.exec_result(command.exec_id, wait=True, timeout=DEADLINE_S)
    os.close(opened)
    assert (found.state, found.exit_code) == ("exited", 7)


def door(hold: HomeForTests, session: Session) -> tuple[Path, Path]:
    path = hold.path / "sessions" / session.id / "keeper.sock"
    return path, path.with_suffix(".away")


@pytest.mark.parametrize("asked", ["input", "quiet", "port", "text"])
def test_a_session_whose_door_was_not_open_yet_when_a_new_host_looked_is_waited_for(
    hold: HomeForTests, asked: str
) -> None:
    """As it is between a keeper's lock and its address: it lives, and cannot be reached."""
    s = hold.run("bash", "-c", "read -r line; echo got $line; python3 -m http.server --bind 127.0.0.1 $line")
    assert s.wait(input=True, timeout=DEADLINE_S).event != "timeout"
    path, away = door(hold, s)
    path.rename(away)
    hold.kill_daemon()
    assert not is_answered(hold, s)
    waits: dict[str, Callable[[], Any]] = {
        "input": lambda: s.wait(input=True, timeout=DEADLINE_S),
        "quiet": lambda: s.wait(quiet=0.1, timeout=DEADLINE_S),
        "text": lambda: s.wait(text="never printed", timeout=0.5),
        "port": lambda: s.wait(port=1, timeout=0.5),
    }
    opening = threading.Timer(1.0, away.rename, (path,))  # while it is waited for
    opening.start()
    found = waits[asked]()
    opening.join()
    assert found.event == {"text": "timeout", "port": "timeout"}.get(asked, asked)
    until(lambda: is_answered(hold, s), timeout=DEADLINE_S)
