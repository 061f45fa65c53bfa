"""A start that fails half-way, for want of threads or processes, leaves nothing running and nothing behind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.home import HOLD, HomeForTests, Result, until

_UID = 100_000 + os.getpid()  # nobody else's: the kernel counts processes by user
# Root is bound by no limit of processes. What it is run as instead may read the interpreter, wherever that lies.
_ORDINARY = [
    "setpriv",
    "--reuid",
    str(_UID),
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
]
_BECOME = _ORDINARY if os.getuid() == 0 else []

pytestmark = pytest.mark.skipif(bool(_BECOME) and not shutil.which("setpriv"), reason="root needs setpriv for this")


class Ordinary:
    """A home of an ordinary user."""

    def __init__(self, home: HomeForTests) -> None:
        self.home, self._env = home, {**home.env, "HOME": str(home.path)}
        if _BECOME:
            os.chown(home.path, _UID, -1)

    def __call__(self, *words: str) -> Result:
        done = subprocess.run([*_BECOME, *HOLD, *words], env=self._env, capture_output=True, timeout=60, check=False)
        return Result(done)

    def pid(self) -> int:
        return int(json.loads((self.home.path / "running.json").read_text())["pid"])

    def zygote(self) -> int:
        return int(self("status", "--json").json["host"]["zygote_pid"])

    def log(self) -> str:
        return (self.home.path / "host.log").read_text()


@pytest.fixture
def user() -> Iterator[Ordinary]:
    path = Path(tempfile.mkdtemp(prefix="hold-"))  # pytest's own folder is not for other users
    made = Ordinary(HomeForTests(path))
    try:
        assert made("up").code == 0
        yield made
        bound(made.pid(), resource.RLIM_INFINITY)
        assert made("down", "--all", "--yes").code == 0
    finally:
        made.home.close()
        shutil.rmtree(path)


def bound(pid: int, processes: int) -> None:
    """As the user itself: root of a container may not."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    soft = hard if processes == resource.RLIM_INFINITY else processes
    words = ["prlimit", "--pid", str(pid), f"--nproc={'unlimited' if soft == resource.RLIM_INFINITY else soft}:"]
    subprocess.run([*_BECOME, *words], check=True)


def running(mark: str) -> list[str]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words and b"sleep" in words[:1]:
            found.append(name)
    return found


def test_without_threads_a_start_is_refused_whole_or_happens(user: Ordinary) -> None:
    bound(user.pid(), 1)
    mark = f"98765.{os.getpid()}"
    refused = user("run", "-d", "-n", "one", "--", "sleep", mark)
    assert (refused.code, len(refused.err.splitlines())) == (5, 1), refused.err
    assert "thread" in refused.err
    assert (running(mark), os.listdir(user.home.path / "sessions")) == ([], [])
    bound(user.pid(), resource.RLIM_INFINITY)
    user("doctor")  # which leaves the host one thread to sync with, and none for what comes after the start
    bound(user.pid(), 1)
    assert user("run", "-d", "-n", "two", "--", "sleep", mark).code == 0
    assert len(running(mark)) == 1
    assert [s["name"] for s in user("ls", "--json").json] == ["two"]
    assert "Traceback" not in user.log()


@pytest.mark.skipif(not _BECOME, reason="how many processes an ordinary user has is not the test's to say")
def test_a_keeper_without_a_process_for_its_program_says_so(user: Ordinary) -> None:
    mark = f"98766.{os.getpid()}"
    assert user("run", "-d", "-n", "one", "--", "sleep", mark).code == 0  # and the host has its threads
    zygote = user.zygote()
    until(lambda: len(spares()) == 2)  # a spare and the child that it will make a program of
    os.kill(min(spares()), signal.SIGKILL)
    until(lambda: not spares())  # the next is forked for the next start
    bound(zygote, sum(map(threads, theirs())) + 2)  # the command itself, and a keeper
    refused = user("run", "-d", "-n", "two", "--", "sleep", mark)
    assert (refused.code, len(refused.err.splitlines())) == (1, 1), refused.err
    assert len(running(mark)) == 1
    assert [s["name"] for s in user("ls", "--json").json] == ["one"]
    assert "Traceback" not in user.log()
    bound(zygote, resource.RLIM_INFINITY)
    until(lambda: user("run", "-d", "--", "sleep", mark).code == 0)


def theirs() -> list[int]:
    """The user's processes."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{name}").st_uid == _UID:
                found.append(int(name))
        except OSError:
            continue
    return found


def threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def spares() -> list[int]:
    found = []
    for pid in theirs():
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if name == "hold-spare" and state != "Z":
            found.append(pid)
    return found
