"""What a program asks its terminal while there is no host: a new one answers what is recent, and types nothing stale."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast.model.home import Home
from tests.support.home import HomeForTests, read_all, until
from tests.support.keeperline import KeeperLine

WAIT_S = 60
STALE_S = 1.5  # past the second for which an answer is still worth something
# Asks where the cursor is once the gate opens, and says what it read up to an R.
ASKS = r"""
import os, sys, tty
tty.setcbreak(0)
print("ready", flush=True)
open(sys.argv[1]).read()
os.write(1, b"asked \x1b[6n")
got = b""
while not got.endswith(b"R"):
    got += os.read(0, 1)
print("got", got, flush=True)
"""


def test_a_question_that_is_older_than_a_second_is_left_unanswered(hold: HomeForTests, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    s = hold.run("python3", "-c", ASKS, str(gate))
    assert s.wait(text="ready", timeout=WAIT_S).event == "text"
    hold.kill_daemon()
    gate.write_text("")
    with KeeperLine(Home(str(hold.path)), s.id, rights=["view"]) as line:  # no host is started by looking
        until(lambda: line.act("status")["ok"]["output"]["end"] >= len("ready\r\nasked \x1b[6n"), timeout=WAIT_S)
    asked = time.monotonic()
    until(lambda: time.monotonic() > asked + STALE_S, timeout=WAIT_S)
    s.send("R")  # by a new host, which has looked at the session before
    assert s.wait(exit=True, timeout=WAIT_S).event == "exit"
    assert b"got b'R'" in read_all(s)
