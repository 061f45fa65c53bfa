"""A host that dies under an attached terminal is started again by it, so that the program's questions are answered."""

from __future__ import annotations

import os

from holdfast.model.home import Home
from holdfast.system.atomic_files import read_json
from tests.support.attached import AttachedTerminal
from tests.support.home import HomeForTests, read_all, until

WAIT_S = 60
# Asks the terminal where its cursor is, once a line comes, and says what it got.
ASKS = r"""
import os, sys, termios, tty
mode = termios.tcgetattr(0)
print("ready", flush=True)
while sys.stdin.readline():
    tty.setcbreak(0)
    os.write(1, b"\x1b[6n")
    got = b""
    while not got.endswith(b"R"):
        got += os.read(0, 1)
    termios.tcsetattr(0, termios.TCSANOW, mode)
    print("answered", got[1:].decode(), flush=True)
"""


def running(hold: HomeForTests) -> int:
    """The pid of a host that serves; 0 while there is none. It is not asked: asking would start it."""
    about = read_json(Home(str(hold.path)).running_file) or {}
    try:
        os.kill(about.get("pid") or 0, 0)
    except OSError:
        return 0
    return int(about.get("pid") or 0)


def test_a_question_of_the_program_is_answered_after_the_host_died(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASKS)
    assert s.wait(text="ready", timeout=WAIT_S).event != "timeout"
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.shows("ready", WAIT_S)
        for round_ in range(1, 3):
            died = hold.kill_daemon()
            terminal.until(lambda died=died: running(hold) not in (0, died), WAIT_S)  # type: ignore[misc]
            terminal.type(b"\r")
            terminal.until(lambda n=round_: terminal.screen.text().count("answered") == n, WAIT_S)  # type: ignore[misc]
        terminal.type(b"\x1cd")
        assert terminal.wait(WAIT_S) == 0


def test_a_question_is_answered_once_also_by_two_hosts(hold: HomeForTests) -> None:
    s = hold.run("python3", "-c", ASKS)
    assert s.wait(text="ready", timeout=WAIT_S).event != "timeout"
    for round_ in range(1, 4):
        s.send("", enter=True)
        assert s.wait(text=rf"(?s)(answered.*){{{round_}}}", start=0, timeout=WAIT_S).event == "text"
        hold.kill_daemon()  # the next command brings up another, right after the answer
    assert b"R^[" not in read_all(s)
    assert b"^[" not in read_all(s)  # what nobody asked for would be echoed


def test_a_host_that_was_stopped_on_purpose_stays_down(hold: HomeForTests) -> None:
    s = hold.run("cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.type(b"before\r")
        terminal.until(lambda: terminal.screen.text().count("before") == 2, WAIT_S)
        pid = running(hold)
        hold.host.close()
        assert hold("down").code == 0
        terminal.type(b"after\r")
        terminal.until(lambda: terminal.screen.text().count("after") == 2, WAIT_S)
        assert running(hold) in (0, pid)
        assert not (hold.path / "host.sock").exists()
    until(lambda: s.status().state == "live", WAIT_S)
