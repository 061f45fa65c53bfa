"""The spare keeper: forked in advance for the next start. Killing it costs nothing, and it never outlives its reason."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from tests.support.home import HOLD, HomeForTests, alive, read_all, until, wait_fd


def name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def spares(hold: HomeForTests) -> list[int]:
    """Living spares, by the roles that the home knows and the names that the kernel does."""
    pids = [int(name.partition(".")[0]) for name in os.listdir(hold.path / "roles") if name[0].isdigit()]
    return [pid for pid in pids if alive(pid) and name_of(pid) == "hold-spare"]


def setup_child(spare: int) -> int:
    """The child that will become the program, still waiting for its order."""
    return next((int(p) for p in os.listdir("/proc") if p.isdigit() and parent_of(int(p)) == spare), 0)


def the_spare(hold: HomeForTests) -> int:
    hold.daemon_pid()
    spare = int(until(lambda: spares(hold), timeout=60)[0])
    until(lambda: setup_child(spare), timeout=60)
    return spare


def killed(pid: int) -> None:
    fd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    wait_fd(fd, timeout=60)


def works(hold: HomeForTests, word: str) -> None:
    s = hold.run("sh", "-c", f"echo {word}; exit 7")
    assert s.wait(exit=True, timeout=60).event != "timeout"
    until(lambda: s.status().state == "exited", timeout=60)
    assert read_all(s) == f"{word}\r\n".encode()
    ended = s.status().exit
    assert ended is not None
    assert ended.code == 7


def test_a_start_is_served_by_the_spare_and_another_takes_its_place(hold: HomeForTests) -> None:
    spare = the_spare(hold)
    child = setup_child(spare)
    s = hold.run("cat")
    assert hold.keeper_pid(s) == spare
    assert s.status().pid == child
    assert the_spare(hold) != spare


def test_killing_the_spare_costs_nothing(hold: HomeForTests) -> None:
    before = hold.run("cat", name="before")
    pid = before.status().pid
    for n in range(3):
        spare = the_spare(hold)
        child = setup_child(spare)
        killed(spare)
        until(lambda child=child: not alive(child), timeout=60)  # type: ignore[misc]
        works(hold, f"round-{n}")
    assert before.status().pid == pid


def test_killing_what_would_become_the_program_costs_nothing(hold: HomeForTests) -> None:
    killed(setup_child(the_spare(hold)))
    works(hold, "still")


def test_a_program_on_pipes_does_without_the_terminal_that_was_prepared(hold: HomeForTests) -> None:
    spare = the_spare(hold)
    s = hold.run("sh", "-c", "test -t 0 || echo no terminal; ls /proc/$$/fd | wc -l", pipes=True)
    assert hold.keeper_pid(s) == spare or s.status().state != "live"
    assert s.wait(exit=True, timeout=60).event != "timeout"
    until(lambda: s.status().state == "exited", timeout=60)
    assert read_all(s).split(b"\n")[0] == b"no terminal"


@pytest.mark.parametrize("whose", ["host", "zygote"])
def test_the_spare_ends_with_its_host_and_with_its_zygote(hold: HomeForTests, whose: str) -> None:
    s = hold.run("cat")
    keeper, spare = hold.keeper_pid(s), the_spare(hold)
    child = setup_child(spare)
    about = hold.host.call("ping")["host"]
    hold.host.close()
    killed(about["pid"] if whose == "host" else about["zygote_pid"])
    until(lambda: not alive(spare) and not alive(child), timeout=60)
    assert alive(keeper)
    works(hold, "after")


def test_the_spare_is_no_session(hold: HomeForTests) -> None:
    spare = the_spare(hold)
    assert hold.host.call("ls", all=True) == []
    roles = next(f for f in hold("doctor", "--json").json["checks"] if f["name"] == "roles")
    assert roles["status"] == "ok"
    hold.host.call("down")
    hold.host.close()
    until(lambda: not alive(spare), timeout=60)


def test_a_start_that_hangs_keeps_no_other_from_happening(hold: HomeForTests) -> None:
    """As one in a folder on a server that does not answer: it is late alone, and is there when it begins after all."""
    spare = the_spare(hold)
    child = setup_child(spare)
    os.kill(child, signal.SIGSTOP)
    hanging = subprocess.Popen([*HOLD, "run", "-d", "-n", "hanging", "--", "sleep", "1000"], env=hold.env)
    try:
        until(lambda: name_of(spare) == "hold-keeper", timeout=60)
        works(hold, "beside")
        assert hanging.wait(60) != 0
    finally:
        os.kill(child, signal.SIGCONT)
        hanging.wait(60)
    until(lambda: child in [s["pid"] for s in hold.host.call("ls") if s["name"] == "hanging"], timeout=60)


def test_a_program_that_cannot_start_is_told_exactly_however_often(hold: HomeForTests) -> None:
    """What failed may be said before or after the keeper listens for it."""
    for _ in range(20):
        with pytest.raises(HoldfastError) as missing:
            hold.run("/nonexistent/program")
        assert (missing.value.code, missing.value.message) == ("no_program", "/nonexistent/program: command not found")
        with pytest.raises(HoldfastError) as nowhere:
            hold.run("cat", cwd="/nonexistent")
        assert nowhere.value.code == "not_found"
    works(hold, "fine")
