"""What a hostile look at keepers and host found, each fault tried for real."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.home import Home
from holdfast.system import kernel
from tests.support.home import HomeForTests, alive, read_all, until, wait_fd
from tests.support.keeperline import dialled
from tests.support.ownkeeper import OwnKeeper
from tests.support.small import fill, small_home

WAIT_S = 60
Json = dict[str, Any]


def killed(pid: int) -> None:
    fd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    wait_fd(fd, WAIT_S)


def opened(gate: Path) -> int:
    """Open a gate for whoever reads it, now or later; it does not wait."""
    fd = os.open(gate, os.O_RDWR)
    os.write(fd, b"\n")
    return fd


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


# -- restart policies --------------------------------------------------------------------------------------------------


def test_a_lost_program_that_still_runs_is_ended_before_a_policy_starts_it_again(hold: HomeForTests) -> None:
    """Two of it would fight for one port, and one of them would be nobody's."""
    s = hold.run("bash", "-c", "trap '' HUP; sleep 1000; true", name="single", restart="always")
    first = s.status().pid
    assert first is not None
    killed(hold.keeper_pid(s))
    found = until(lambda: (v := s.status()).generation == 2 and v.pid and v, timeout=WAIT_S)
    assert found.pid != first
    assert not alive(first)


# -- a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture
def tight(tmp_path: Path) -> Iterator[HomeForTests]:
    """A home on a disk of 8 MB; `fill` leaves not a byte of it."""
    with small_home(tmp_path, 8) as home:
        yield home


def test_an_end_on_a_full_disk_is_known_and_the_rest_of_the_tree_keeps_its_keeper(
    tight: HomeForTests, gate: Path
) -> None:
    s = tight.run("bash", "-c", f"trap '' HUP; sleep 1000 & read -r line < {gate}; exit 7", name="end")
    keeper = tight.keeper_pid(s)
    before = until(lambda: len((v := s.status()).processes) == 2 and v, timeout=WAIT_S)
    left = next(p.pid for p in before.processes if p.pid != before.pid)
    ballast = fill(tight)
    fd = opened(gate)
    until(lambda: not alive(before.pid), timeout=WAIT_S)
    os.close(fd)
    ended = until(lambda: s.status().exit, timeout=WAIT_S)
    assert (ended.code, ended.known) == (7, True)
    assert alive(keeper)
    assert alive(left)
    os.kill(left, signal.SIGKILL)
    found = until(lambda: (v := s.status()).state != "live" and v, timeout=WAIT_S)
    assert (found.state, found.exit.code) == ("exited", 7)
    tight.kill_daemon()
    ballast.unlink()
    found = s.status()  # also by a host that did not see it
    assert found.exit is not None
    assert (found.state, found.exit.code) == ("exited", 7)


# -- a keeper that can have no more of something -----------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["RLIMIT_NOFILE", "RLIMIT_AS"])
def test_a_keeper_without_descriptors_or_memory_for_a_thread_keeps_its_session(tmp_path: Path, limit: str) -> None:
    """What it would sync to the disk once a second is synced later, or not; nobody dies of it."""
    with OwnKeeper(tmp_path, "cat") as own:
        number = getattr(resource, limit)
        before = resource.prlimit(own.pid, number)
        own.host.act("input", data="emVybwo=")  # "zero": its files are open from here on
        until(lambda: own.host.act("status")["ok"]["output"]["durable"] >= 12, timeout=WAIT_S)
        resource.prlimit(own.pid, number, (3 if limit == "RLIMIT_NOFILE" else 1 << 20, before[1]))
        own.host.act("input", data="b25lCg==")  # "one"
        until(lambda: own.host.act("status")["ok"]["output"]["end"] >= 22, timeout=WAIT_S)
        started = own.host.act("status")["ok"]["output"]["durable"]
        tries = threading.Event()
        threading.Timer(2.5, tries.set).start()  # a sync is due after one second
        until(tries.is_set, timeout=WAIT_S)
        assert own.host.act("status")["ok"]["output"]["durable"] == started
        resource.prlimit(own.pid, number, before)
        own.host.act("input", data="dHdvCg==")
        until(lambda: own.host.act("status")["ok"]["output"]["durable"] >= 32, timeout=WAIT_S)


# -- a look at a lock --------------------------------------------------------------------------------------------------


def test_two_who_look_at_a_lock_do_not_take_each_other_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    stop = threading.Event()
    seen: list[bool] = []

    def look() -> None:
        while not stop.is_set():
            seen.append(kernel.lock_held(str(path)))

    lookers = [threading.Thread(target=look) for _ in range(4)]
    for one in lookers:
        one.start()
    until(lambda: len(seen) > 20_000, timeout=WAIT_S)
    stop.set()
    for one in lookers:
        one.join()
    assert not any(seen)


def test_a_start_is_not_refused_because_somebody_looks_at_its_lock(tmp_path: Path) -> None:
    """A host that waits for a start looks whether the lock is taken, and has it itself for that moment."""
    folder = Home(str(tmp_path)).session("ses_own")
    os.makedirs(folder.path)
    looking = os.open(folder.keeper_lock, os.O_RDWR | os.O_CREAT, 0o600)
    done = threading.Event()

    def look() -> None:
        """Slow looks, nearly one after the other: whoever tries but once meets one."""
        while not done.is_set():
            fcntl.flock(looking, fcntl.LOCK_SH)
            done.wait(0.1)
            fcntl.flock(looking, fcntl.LOCK_UN)
            done.wait(0.01)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        with OwnKeeper(tmp_path, "cat") as own:
            assert alive(own.program)
    finally:
        done.set()
        looker.join()
        os.close(looking)


# -- what lies in a home -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("odd", [{}, {"id": "ses_odd"}, {"id": 7, "size": "large", "name": None}])
def test_a_manifest_that_is_no_manifest_keeps_no_host_from_serving_the_others(hold: HomeForTests, odd: Json) -> None:
    s = hold.run("cat")
    folder = hold.path / "sessions" / "ses_odd"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(odd))
    hold.kill_daemon()
    assert [v["id"] for v in hold.host.call("ls", all=True)] == [s.id]
    s.send("one\n")
    until(lambda: b"one\r\none" in read_all(s), timeout=WAIT_S)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_keeper_without_a_descriptor_for_a_client_lets_it_wait_and_does_not_spin(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "cat") as own:
        before = resource.prlimit(own.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(own.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        waiting = dialled(own.folder.keeper_socket)
        began, spent = time.monotonic(), cpu_s(own.pid)
        until(lambda: time.monotonic() > began + 3, timeout=WAIT_S)
        # Spinning takes what the machine gives, of two loaded processors a third at least; waiting takes next to nothing.
        assert cpu_s(own.pid) - spent < 0.3
        resource.prlimit(own.pid, resource.RLIMIT_NOFILE, before)
        with waiting, own.line() as line:
            assert line.act("status")["ok"]["session"] == "ses_own"


def test_a_keeper_that_cannot_look_does_not_call_its_tree_empty(tmp_path: Path, gate: Path) -> None:
    """Without a descriptor /proc cannot be read, and what is not seen is not gone."""
    with OwnKeeper(
        tmp_path, "bash", "-c", f"trap '' HUP; sleep 1000 & echo $! >{tmp_path}/left; read -r line <{gate}"
    ) as own:
        left = int(until(lambda: (p := tmp_path / "left").exists() and p.read_text().strip(), timeout=WAIT_S))
        before = resource.prlimit(own.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(own.pid, resource.RLIMIT_NOFILE, (3, before[1]))
        fd = opened(gate)
        assert own.host.event(lambda e: e["event"] == "exit")["exit"]["code"] == 0
        os.close(fd)
        assert own.host.act("status")["ok"]["exit"]["code"] == 0
        resource.prlimit(own.pid, resource.RLIMIT_NOFILE, before)
        assert alive(left)
        os.kill(left, signal.SIGKILL)
        assert own.host.event(lambda e: e["event"] == "ended")["exit"]["code"] == 0


# -- a host with few descriptors ---------------------------------------------------------------------------------------


def test_a_host_takes_all_the_descriptors_it_may_have_and_programs_keep_their_starters_limit(
    hold: HomeForTests,
) -> None:
    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))

    words = [sys.executable, "-m", "holdfast.cli.main", "run", "--pipes", "--", "sh", "-c", "ulimit -Sn"]
    done = subprocess.run(
        words, env=hold.env, capture_output=True, text=True, timeout=WAIT_S, check=False, preexec_fn=few
    )
    assert (done.stdout, done.stderr) == ("64\n", "")
    soft, hard = resource.prlimit(hold.daemon_pid(), resource.RLIMIT_NOFILE)
    assert soft == hard


LOOKS = """
import os, resource, sys
from holdfast.host.sessions.session import keeper_alive
from holdfast.model.home import Home
folder = Home(sys.argv[1]).session("ses_own")
before = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
print(keeper_alive(folder))
resource.setrlimit(resource.RLIMIT_NOFILE, before)
print(keeper_alive(folder))
"""


def test_a_lock_that_cannot_be_looked_at_calls_nobody_dead(tmp_path: Path) -> None:
    """By a process without a free descriptor, and then with one; nobody holds that lock."""
    folder = Home(str(tmp_path)).session("ses_own")
    os.makedirs(folder.path)
    Path(folder.keeper_lock).touch()
    done = subprocess.run([sys.executable, "-c", LOOKS, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["True", "False"], "")


# -- a disk that takes nothing any more --------------------------------------------------------------------------------


def test_a_home_that_becomes_read_only_stops_no_program_and_no_answer(tight: HomeForTests, gate: Path) -> None:
    s = tight.run("bash", "-c", f"echo one; read -r line < {gate}; echo two; exit 7", name="end")
    assert s.wait(text="one", timeout=WAIT_S).event == "text"
    other = tight.run("sleep", "1000", name="other")
    small = str(tight.path.parent)
    for how in (
        ["--bind", small, small],
        ["-o", "remount,bind,ro", small],
    ):  # what is open stays so, nothing else can be
        subprocess.run(["mount", *how], check=True)
    fd = opened(gate)
    try:
        found = until(lambda: (v := s.status()).state != "live" and v, timeout=WAIT_S)
        assert (found.state, found.exit.code, found.exit.known) == ("exited", 7, True)
        assert read_all(s).split() == [b"one", b"two"]
        assert [v["name"] for v in tight.host.call("ls", all=True)] == ["end", "other"]
        stopped = tight("stop", "other", "-t", "0")
        assert "internal" not in stopped.err, stopped.err
        assert "Traceback" not in stopped.err
    finally:
        os.close(fd)
        subprocess.run(["umount", "-l", small], check=True)
    other.stop(0)
    assert other.status().state == "exited"
