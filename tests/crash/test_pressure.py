"""Under pressure: many sessions, a fork bomb, a full disk, no descriptors, no memory. The others go on."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, alive, read_all, until
from tests.support.operators import journal
from tests.support.small import small_home

pytestmark = pytest.mark.serial


def healthy(hold: HomeForTests, bystander: object) -> None:
    """The daemon answers, another session goes on, and a new one starts."""
    bystander.send("ping\n")  # type: ignore[attr-defined]
    assert bystander.wait(text="ping\r\nping\r\n", timeout=30).event != "timeout"  # type: ignore[attr-defined]
    fresh = hold.run("sh", "-c", "echo fresh; cat")
    assert fresh.wait(text="fresh", timeout=30).event != "timeout"
    fresh.stop(0)


@pytest.mark.timeout(300)
def test_two_hundred_sessions_at_once(hold: HomeForTests) -> None:
    sessions = [hold.run("sh", "-c", f"echo I am {n}; cat", name=f"s{n}") for n in range(200)]
    listed = hold.host.sessions()
    assert len(listed) == 200
    assert len({s.pid for s in listed}) == 200
    hold.kill_daemon()
    assert {s.pid for s in hold.host.sessions()} == {s.pid for s in listed}
    for n in (0, 99, 199):
        assert read_all(sessions[n]) == b"I am %d\r\n" % n
    assert hold("down", "--all", "--yes", timeout=200).code == 0
    assert not any(alive(s.pid) for s in listed if s.pid)


def pids_are_limited(session: object) -> bool:
    return any("/pids/" in leaf or "pids" in leaf for leaf in session.host.call("status", session=session.id)["cgroup"])  # type: ignore[attr-defined]


@pytest.mark.timeout(180)
def test_a_fork_bomb_is_held_by_its_limit_and_ended_by_stop(hold: HomeForTests) -> None:
    bystander = hold.run("cat", name="bystander")
    source = "import os, time\ninput()\nwhile True:\n try: os.fork()\n except OSError: time.sleep(0.05)"
    bomb = hold.run(sys.executable, "-c", source, name="bomb", pids_max=100)
    if not pids_are_limited(bomb):
        pytest.skip("this machine gives us no pids cgroup to hold a fork bomb in")
    bomb.send("go\n")
    until(lambda: len(bomb.status().processes) > 20, timeout=60)
    assert len(bomb.status().processes) <= 101
    healthy(hold, bystander)
    bomb.stop(0.2)
    assert bomb.status().processes == []
    assert bomb.status().state == "exited"


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_stops_no_program_and_the_rest_goes_on(hold: HomeForTests, tmp_path: Path) -> None:
    with small_home(tmp_path, 4) as tight:
        bystander = tight.run("cat", name="bystander")
        until(lambda: journal(tight, "start"))  # who is typed in on a full disk has its story's beginning on it
        flood = tight.run("sh", "-c", "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo finished; cat", name="flood")
        until(lambda: "finished" in flood.screen().text or flood.status().output.end > 30_000_000, timeout=60)
        assert flood.status().state == "live"
        gaps = [c.gap for c in flood.output() if c.gap]
        assert gaps  # what had no room is told, not hidden
        bystander.send("ping\n")
        until(lambda: bystander.status().output.end >= 12)
        (tight.path / "sessions" / flood.id / "out").exists()
        flood.stop(0)
        flood.remove()
        healthy(tight, tight.run("cat", name="after"))


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system needs root")
def test_where_not_a_byte_is_left_what_cannot_be_written_down_is_refused_in_words(tmp_path: Path) -> None:
    with small_home(tmp_path, 4) as tight:
        tight.run("cat", name="bystander")
        with contextlib.suppress(OSError), (tight.path.parent / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(bytes(1024))
        for words in (
            ("run", "-d", "--", "true"),
            ("send", "bystander", "ping", "--enter"),
            ("rename", "bystander", "other"),
        ):
            done = tight(*words)
            assert "internal" not in done.err, done.err
            assert "Traceback" not in done.err
        (tight.path.parent / "ballast").unlink()
        healthy(tight, tight.run("cat", name="after"))


def test_a_daemon_without_descriptors_refuses_and_recovers(hold: HomeForTests) -> None:
    bystander = hold.run("cat", name="bystander")
    pid = hold.daemon_pid()
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    # Numbers below three are taken for good, so that none is free; those that are open go on working.
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    refused = 0
    for _ in range(5):
        try:
            hold.host.call("run", command=["true"], cwd="/", env={"PATH": os.environ["PATH"]})
        except HoldfastError:
            refused += 1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert refused == 5
    assert hold.daemon_pid() == pid
    healthy(hold, bystander)


def test_a_program_killed_for_its_memory_is_told_and_its_keeper_lives(hold: HomeForTests) -> None:
    bystander = hold.run("cat", name="bystander")
    eater = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    s = hold.run("sh", "-c", f"{sys.executable} -c '{eater}'; echo code $?; cat", memory_max=64 << 20)
    if not any("memory" in leaf for leaf in hold.host.call("status", session=s.id)["cgroup"]):
        pytest.skip("this machine gives us no memory cgroup")
    assert s.wait(text="code 137", timeout=60).event != "timeout"
    assert s.status().state == "live"
    healthy(hold, bystander)


def test_a_stopped_keeper_is_told_as_not_answering_and_recovers(hold: HomeForTests) -> None:
    import signal

    s = hold.run("cat")
    keeper = hold.keeper_pid(s)
    os.kill(keeper, signal.SIGSTOP)
    try:
        view = hold.host.call("status", session=s.id)
        assert (view["state"], view["activity"]["kind"]) == ("live", "unknown")
        assert "does not answer" in view["activity"]["evidence"]
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert until(lambda: s.status().activity.kind == "waiting_for_input")
