"""kill -9 of clients, SDK processes and the daemon, in every order: no pid changes, no line is lost or doubled."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys

from tests.support.home import HOLD, HomeForTests, alive, read_all, until
from tests.support.soak import Rounds

SESSIONS = 20
DEATHS = 18  # every order of the three once

# Numbered lines at a steady pace until a line is typed; then the exit code that was typed.
COUNTER = """
import select, sys
n = 0
while not select.select([sys.stdin], [], [], 0.2)[0]:
    n += 1
    print("line", n, flush=True)
print("last", n, flush=True)
sys.exit(int(sys.stdin.readline()))
"""

FOLLOWER = """
import sys
from holdfast.client._sync.host import Host
session = Host(sys.argv[1]).session(sys.argv[2])
for chunk in session.output(0, follow=True):
    sys.stdout.write("got\\n"); sys.stdout.flush()
"""


class Victims:
    """One of each kind of process that may die, started again after each death."""

    def __init__(self, hold: HomeForTests, names: list[str], rng: random.Random) -> None:
        self.hold, self.names, self.rng = hold, names, rng
        self.clients: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, kind: str) -> None:
        name = self.rng.choice(self.names)
        command = (
            [*HOLD, "logs", "-f", name]
            if kind == "client"
            else [sys.executable, "-c", FOLLOWER, str(self.hold.path), name]
        )
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.hold.env)
        assert process.stdout is not None
        # It is in the middle of reading when it dies.
        assert process.stdout.readline(), process.communicate()[1].decode()
        self.clients[kind] = process

    def kill(self, kind: str) -> None:
        if kind == "daemon":
            self.hold.kill_daemon()
            return
        if kind not in self.clients:
            self.start(kind)
        process = self.clients.pop(kind)
        process.kill()
        process.communicate()

    def close(self) -> None:
        for process in self.clients.values():
            process.kill()
            process.communicate()


def test_killing_clients_sdk_and_daemon_in_every_order_changes_no_pid_and_no_line(
    hold: HomeForTests, rounds: Rounds
) -> None:
    rng = rounds.random
    sessions = [hold.run(sys.executable, "-c", COUNTER, name=f"count-{n}") for n in range(SESSIONS)]
    pids = [s.status().pid for s in sessions]
    orders = itertools.cycle(itertools.permutations(("client", "sdk", "daemon")))
    victims = Victims(hold, [s.name for s in sessions], rng)
    deaths, most = 0, rounds.count(DEATHS)
    try:
        while deaths < most:
            for kind in next(orders):
                victims.kill(kind)
                deaths += 1
            assert all(alive(pid) for pid in pids if pid)
            some = rng.choice(sessions)
            assert some.status().pid == pids[sessions.index(some)]
    finally:
        victims.close()
    assert [s.status().pid for s in sessions] == pids
    for n, s in enumerate(sessions):
        s.send(f"{n}\n")
    for n, s in enumerate(sessions):
        assert s.wait(exit=True, timeout=30).event != "timeout"
        ended = until(lambda s=s: (got := s.status()).state == "exited" and got)  # type: ignore[misc]
        assert ended.exit is not None
        assert (ended.exit.code, ended.exit.known) == (n, True)
        lines = read_all(s).split(b"\r\n")
        count = int(next(line for line in lines if line.startswith(b"last")).split()[1])
        assert [line for line in lines if line.startswith(b"line")] == [b"line %d" % i for i in range(1, count + 1)]


def test_a_keeper_that_dies_makes_the_exit_unknown_and_never_zero(hold: HomeForTests) -> None:
    s = hold.run("sleep", "1000")
    os.kill(hold.keeper_pid(s), signal.SIGKILL)
    status = until(lambda: (got := s.status()).state == "lost" and got)
    assert status.exit.code is None
    assert status.exit.known is False


def test_killing_the_zygote_changes_nothing_and_the_next_session_starts(hold: HomeForTests) -> None:
    s = hold.run("cat")
    pid = s.status().pid
    os.kill(hold.host.call("ping")["host"]["zygote_pid"], signal.SIGKILL)
    assert s.status().pid == pid
    assert hold.run("cat").status().state == "live"
