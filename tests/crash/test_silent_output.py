"""Reading the output of a session whose keeper does not answer: what is on disk, and the rest when the keeper goes on."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host, Session
from tests.support.home import HomeForTests, alive, until

DEADLINE_S = 60.0


class Follower:
    """Somebody who follows the output, beside the test."""

    def __init__(self, hold: HomeForTests, session: Session) -> None:
        self.seen = b""
        self._host = Host(str(hold.path))
        self._session = Session(self._host, session.id, session.name)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        for chunk in self._session.output(follow=True):
            self.seen += chunk.data

    def end(self) -> bytes:
        self._thread.join(DEADLINE_S)
        assert not self._thread.is_alive()
        self._host.close()
        return self.seen


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def printing(hold: HomeForTests, gate: Path) -> Session:
    """A session that has printed `one`, and prints `two` when the gate is opened."""
    session = hold.run("bash", "-c", f"echo one; read -r line < {gate}; echo two")
    assert session.wait(text="one", timeout=DEADLINE_S).event == "text"
    return session


def opened(gate: Path) -> None:
    fd = os.open(gate, os.O_RDWR)  # which does not wait for who reads it
    os.write(fd, b"\n")
    until(lambda: not readers(gate), timeout=DEADLINE_S)
    os.close(fd)


def readers(gate: Path) -> list[str]:
    """Processes other than this one that have the gate open."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        if int(pid) != os.getpid() and str(gate) in links:
            found.append(pid)
    return found


def silenced(hold: HomeForTests, session: Session, known: str) -> int:
    """Its keeper stopped; the host has a line to it, or is a new one that never got one."""
    keeper = hold.keeper_pid(session)
    os.kill(keeper, signal.SIGSTOP)
    if known == "never heard":
        hold.kill_daemon()
    return keeper


@pytest.mark.parametrize("known", ["never heard", "heard before"])
def test_who_follows_gets_what_is_on_disk_and_the_rest_when_the_keeper_goes_on(
    hold: HomeForTests, gate: Path, known: str
) -> None:
    session = printing(hold, gate)
    keeper = silenced(hold, session, known)
    follower = Follower(hold, session)
    until(lambda: b"one" in follower.seen, timeout=DEADLINE_S)
    opened(gate)
    os.kill(keeper, signal.SIGCONT)
    assert follower.end().split() == [b"one", b"two"]


@pytest.mark.parametrize("known", ["never heard", "heard before"])
def test_the_log_is_said_not_to_be_current_while_the_keeper_is_silent(
    hold: HomeForTests, gate: Path, known: str
) -> None:
    session = printing(hold, gate)
    keeper = silenced(hold, session, known)
    said = hold("logs", session.name)
    assert (said.code, said.out.split()) == (0, ["one"])
    assert "does not answer" in said.err
    assert b"".join(chunk.data for chunk in session.output()).split() == [b"one"]
    os.kill(keeper, signal.SIGCONT)
    opened(gate)
    assert session.wait(exit=True, timeout=DEADLINE_S).event == "exit"
    said = hold("logs", session.name)
    assert (said.out.split(), said.err) == (["one", "two"], "")


def test_who_follows_a_silent_keeper_that_is_killed_hears_the_end(hold: HomeForTests, gate: Path) -> None:
    session = printing(hold, gate)
    program = session.status().pid
    assert program is not None
    keeper = silenced(hold, session, "never heard")
    follower = Follower(hold, session)
    until(lambda: b"one" in follower.seen, timeout=DEADLINE_S)
    os.kill(keeper, signal.SIGKILL)
    assert follower.end().split() == [b"one"]
    os.kill(program, signal.SIGKILL)
    until(lambda: not alive(program), timeout=DEADLINE_S)


def test_typing_into_a_session_that_does_not_answer_is_not_told_that_it_has_ended(
    hold: HomeForTests, gate: Path
) -> None:
    session = printing(hold, gate)
    keeper = silenced(hold, session, "never heard")
    line = session.open()
    with pytest.raises(Exception, match="does not answer"):
        line.send(b"x")
    line.close()
    os.kill(keeper, signal.SIGCONT)
