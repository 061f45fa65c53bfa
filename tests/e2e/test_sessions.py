"""Sessions from a user's side: they start, they outlive everything, they end truthfully."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

import pytest

from holdfast.client._sync.host import Session
from holdfast.model.errors import HoldfastError
from holdfast.model.home import Home
from holdfast.system.process_tree import read_stat
from tests.support.home import HomeForTests, alive, read_all, until, wait_fd
from tests.support.keeperline import KeeperLine

pytestmark = pytest.mark.home("file")


def test_a_session_runs_a_program_and_keeps_its_output_and_exit_code(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo one; echo two >&2; exit 3")
    assert s.wait(exit=True, timeout=20).detail["exit"]["code"] == 3  # type: ignore[index]
    status = s.status()
    assert status.exit is not None
    assert (status.state, status.exit.code, status.exit.known) == ("exited", 3, True)
    assert read_all(s) == b"one\r\ntwo\r\n"


def test_pipes_keep_stdout_and_stderr_apart_byte_for_byte(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "printf 'a\\nb'; sleep 0.1; printf 'x\\n' >&2; cat", pipes=True)
    s.send(b"typed\n")
    s.send(eof=True)
    assert s.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: s.status().state == "exited")
    chunks = list(s.output())
    assert b"".join(c.data for c in chunks if c.stream == "stdout") == b"a\nbtyped\n"
    assert b"".join(c.data for c in chunks if c.stream == "stderr") == b"x\n"


def test_pipes_of_a_program_that_ends_at_once_are_still_apart(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo out; echo err >&2", pipes=True)
    assert s.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: s.status().state == "exited")
    assert {c.stream: c.data for c in s.output()} == {"stdout": b"out\n", "stderr": b"err\n"}


@pytest.mark.home("own")
def test_killing_the_daemon_changes_no_pid_and_loses_no_byte(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo line $i; done; cat")
    pid = s.status().pid
    for _ in range(5):
        hold.kill_daemon()
        assert s.status().pid == pid
    assert s.wait(text="line 100000\r\n", timeout=60).event != "timeout"
    lines = read_all(s).split(b"\r\n")
    assert lines[:100000] == [b"line %d" % n for n in range(1, 100001)]


@pytest.mark.home("own")
def test_a_dead_keeper_makes_its_session_lost_with_the_survivors_named(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "trap '' HUP; sleep 1000 & wait")
    assert s.wait(quiet=0.1, timeout=20).event != "timeout"
    until(lambda: len(s.status().processes) == 2)
    os.kill(hold.keeper_pid(s), signal.SIGKILL)
    status = until(lambda: (got := s.status()).state == "lost" and got)
    assert status.exit is not None
    assert (status.exit.known, status.exit.code) == (False, None)
    assert [p.name for p in status.processes if p.name == "sleep"] == ["sleep"]
    survivors = [p.pid for p in status.processes]
    s.stop(0)
    assert not any(alive(pid) for pid in survivors)


def test_a_main_program_that_is_gone_leaves_the_session_live_with_its_exit_known(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "trap '' HUP; sleep 1000 & exit 5")
    assert s.wait(exit=True, timeout=20).event != "timeout"
    status = s.status()
    assert status.exit is not None
    assert (status.state, status.exit.code) == ("live", 5)
    assert [p.name for p in status.processes] == ["sleep"]
    s.stop(0)
    assert s.status().state == "exited"


@pytest.mark.parametrize(
    "escape",
    [
        "nohup sleep 1000 >/dev/null 2>&1 &",
        "setsid -f sleep 1000",
        "(sleep 1000 &)",
        "sh -c 'setsid sh -c \"sleep 1000 & exit\" &'",
    ],
)
def test_what_tried_to_escape_is_in_the_tree_and_ends_with_stop(hold: HomeForTests, escape: str) -> None:
    s = hold.run("sh", "-c", f"{escape}\ncat")
    found = until(lambda: [p.pid for p in s.status().processes if p.name == "sleep"])
    s.stop(1)
    assert not any(alive(pid) for pid in found)
    assert s.status().processes == []


def test_stop_kills_what_ignores_term(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "trap '' TERM HUP; echo ready; while :; do sleep 1; done")
    assert s.wait(text="ready", timeout=20).event != "timeout"
    s.stop(0.2)
    status = s.status()
    assert status.exit is not None
    assert (status.state, status.exit.signal) == ("exited", "SIGKILL")
    assert status.exit.by is not None


def test_an_idle_shell_stops_at_once(hold: HomeForTests) -> None:
    s = hold.run("bash")
    assert s.wait(input=True, timeout=20).event != "timeout"
    s.stop(30)  # the test's own time limit is shorter than this grace time would be
    assert s.status().state == "exited"


@pytest.mark.home("own")
def test_a_daemon_started_from_inside_a_session_outlives_it(hold: HomeForTests) -> None:
    a = hold.run("bash", name="a")
    me = hold.host.whoami()["id"]
    hold.kill_daemon()
    hold.host.autostart = False  # the command typed here must start it, nobody else
    with KeeperLine(Home(str(hold.path)), a.id, operator=me) as line:
        line.type(f"{sys.executable} -m holdfast.cli.main run -d -n b -- sleep 1000\r".encode())
        b = until(lambda: _try(lambda: hold.host.session("b")), timeout=60)
    about, b_pid = hold.host.call("ping")["host"], b.status().pid
    daemon = read_stat(about["pid"])
    assert daemon is not None
    assert daemon.ppid == hold.keeper_pid(a)
    a.stop(1)
    assert alive(about["pid"])
    assert alive(about["zygote_pid"])
    assert (b.status().pid, b.status().state) == (b_pid, "live")
    assert hold.daemon_pid() == about["pid"]


def _try(action: Callable[[], Session]) -> Session | None:
    try:
        return action()
    except HoldfastError:
        return None


def test_a_restart_is_a_new_generation_whose_offsets_go_on(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo started; cat")
    assert s.wait(text="started", timeout=20).event != "timeout"
    end = s.status().output.end
    s.restart()
    assert s.wait(text="started", start=end, timeout=20).event != "timeout"
    status = s.status()
    assert status.generation == 2
    assert status.output.start == 0
    assert read_all(s).count(b"started") == 2


def test_a_program_that_fails_is_restarted_by_policy_and_a_clean_exit_is_not(hold: HomeForTests) -> None:
    failing = hold.run("sh", "-c", "echo try; exit 1", name="failing", restart="on-failure")
    until(lambda: failing.status().generation >= 3)
    failing.stop()
    clean = hold.run("true", name="clean", restart="on-failure")
    assert clean.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: clean.status().state == "exited")
    assert clean.status().generation == 1
    assert clean.status().restart_at is None


@pytest.mark.home("own")
def test_an_always_session_comes_back_after_the_daemon_died_with_it(hold: HomeForTests) -> None:
    s = hold.run("sleep", "1000", restart="always")
    keeper, pid = hold.keeper_pid(s), s.status().pid
    hold.kill_daemon()
    fd = os.pidfd_open(keeper)
    os.kill(keeper, signal.SIGKILL)
    wait_fd(fd)
    status = until(lambda: (got := s.status()).state == "live" and got)
    assert status.generation == 2
    assert status.pid != pid


def test_an_idle_shell_is_warned_about_and_reaped_and_a_listening_one_is_not(hold: HomeForTests) -> None:
    idle = hold.run("bash", name="idle", idle_ttl="2s")
    busy = hold.run(
        "bash",
        "-c",
        "python3 -m http.server 0 --bind 127.0.0.1 >/dev/null 2>&1 & exec bash",
        name="busy",
        idle_ttl="2s",
    )
    assert until(lambda: idle.status().reap_at)
    until(lambda: idle.status().state == "reaped", timeout=30)
    assert busy.status().state == "live"


@pytest.mark.home("own")
def test_a_retried_start_starts_once(hold: HomeForTests) -> None:
    request = {
        "request": "req_same",
        "command": ["sleep", "1000"],
        "cwd": "/",
        "env": {"PATH": os.environ["PATH"]},
    }
    first = hold.host.call("run", **request)
    again = hold.host.call("run", **request)
    assert first["id"] == again["id"]
    assert first["pid"] == again["pid"]
    hold.kill_daemon()
    assert hold.host.call("run", **request)["id"] == first["id"]
