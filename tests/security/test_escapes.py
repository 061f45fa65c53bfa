"""Ways out of a session, each tried twice: by a program that merely runs in one, and by an isolated one.

The first column is what docs/isolation.md promises for the same user: who a caller is taken for, and what it can reach.
Where it says "out", that is a limit: said in the docs, and seen here, so that nobody believes otherwise.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.client._sync.host import Session
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, alive, until
from tests.support.needs import needs, program

pytestmark = pytest.mark.home("file")

WAIT_S = 60
HOLD = shlex.join([sys.executable, "-m", "holdfast.cli.main"])
WHOAMI = f"{HOLD} operator whoami --json"
# Attach to a process and let it go again: what a debugger does first.
PTRACE = "import ctypes,os,sys; c=ctypes.CDLL(None); p=int(sys.argv[1]); r=c.ptrace(16,p,0,0); r or (os.waitpid(p,0), c.ptrace(17,p,0,0)); sys.exit(r != 0)"


class World(NamedTuple):
    """What is outside, for a trick to reach for."""

    home: Path
    work: Path
    other: Session
    bystander: int
    tmux: Path
    key: Path
    me: str


@pytest.fixture(scope="module")
def me(shared: HomeForTests) -> str:
    """The person, who has let an agent in."""
    added = shared("operator", "add", "bot", "--kind", "agent", "--grant", "view,start,type,exec", "--session", "*")
    assert added.code == 0, added.err
    return str(json.loads(shared("operator", "whoami", "--json").out)["name"])


@pytest.fixture
def world(hold: HomeForTests, me: str, tmp_path: Path) -> Iterator[World]:
    work = tmp_path / "work"
    work.mkdir()
    other = hold.run("sh", "-c", "echo said; exec sleep 1000", name="other")
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        tmux = tmp_path / "tmux.sock"
        try:
            keys = [path for path in (hold.path / "keys").rglob("*") if path.is_file()]
            yield World(hold.path, work, other, bystander.pid, tmux, sorted(keys)[0], me)
        finally:
            bystander.kill()
            if tmux.exists():
                subprocess.run(
                    ["tmux", "-S", str(tmux), "kill-server"], capture_output=True, check=False, timeout=WAIT_S
                )


@pytest.fixture(params=["plain", "isolated"])
def session(request: pytest.FixtureRequest, hold: HomeForTests, world: World) -> Session:
    isolated = request.param == "isolated"
    return hold.run(
        "bash", "--norc", name="bots", acts_as="bot", cwd=str(world.work), isolate=isolated, env={"PS1": "bot> "}
    )


def isolated(session: Session) -> bool:
    return session.status().isolation is not None


def reaches(session: Session, source: str) -> bool:
    """Whether a command inside succeeds."""
    done = session.exec(source, timeout=WAIT_S)
    assert done.state == "exited", done.output
    return done.exit_code == 0


def name_in(path: Path) -> str:
    """Who the host took the writer of this file for; it may still be writing."""

    def read() -> Any:
        try:
            return json.loads(path.read_text())
        except (OSError, ValueError):
            return None

    found = until(read, timeout=WAIT_S)
    return str(found.get("name") or found["error"]["code"])


# -- who a caller is taken for -------------------------------------------------------------------------------------

STAYS = {
    "as it is": "{whoami}",
    "without its variables": "env -i HOLDFAST_HOME={home} {whoami}",
    "with somebody's name": "HOLDFAST_OPERATOR={me} {whoami}",
    "another shell": "bash -c 'zsh -fc \"{whoami}\"'",
    "a session of its own": "setsid -w {whoami}",
    "a daemon that forks twice": "setsid -f sh -c 'setsid -f {whoami} > {out}.late 2>&1'; until [ -s {out}.late ]; do sleep 0.05; done; cat {out}.late",
    "a tmux of its own": "tmux -S {work}/own.sock -f /dev/null new-session -d '{whoami} > {out}.late 2>&1'; until [ -s {out}.late ]; do sleep 0.05; done; cat {out}.late",
    "its own process numbers": "unshare -Urpf --mount-proc {whoami} || {whoami}",
}


@pytest.mark.parametrize("trick", STAYS)
def test_a_caller_inside_stays_who_it_is(session: Session, world: World, trick: str) -> None:
    """The agent, or nobody: never the person whose user it runs as."""
    for shell in ("zsh", "tmux"):
        if f"{shell} -" in STAYS[trick]:
            program(shell)
    out = world.work / "who"
    words = STAYS[trick].format(whoami=WHOAMI, home=world.home, me=world.me, work=world.work, out=out)
    session.exec(f"({words}) > {out} 2>/dev/null", timeout=WAIT_S)
    assert name_in(out) in ("bot", "not_allowed")


@needs("tmux")
def test_a_service_outside_that_starts_programs_is_a_way_out(session: Session, world: World) -> None:
    """tmux stands for cron, at, systemd-run and docker: what they start is theirs, not the session's."""
    start = ["tmux", "-S", str(world.tmux), "-f", "/dev/null", "new-session", "-d", "sleep 1000"]
    subprocess.run(start, check=True, timeout=WAIT_S, env={**os.environ, "HOLDFAST_HOME": str(world.home)})
    out = world.work / "who"
    left = reaches(session, f"tmux -S {world.tmux} new-window '{WHOAMI} > {out} 2>&1'")
    assert left is not isolated(session)
    if left:
        assert name_in(out) == world.me


@pytest.mark.parametrize("session", ["isolated"], indirect=True)
def test_the_tools_of_those_services_find_nobody_inside(session: Session) -> None:
    for place in (
        "/run/systemd",
        "/run/dbus",
        "/run/user",
        "/var/spool/cron",
        "/var/run/docker.sock",
        "/run/docker.sock",
    ):
        assert not reaches(session, f"test -e {place}")
    if shutil.which("systemd-run"):
        assert not reaches(session, "systemd-run --user true")
        assert not reaches(session, "systemd-run true")


def test_a_program_that_kills_its_keeper_and_hides_its_mark_is_a_way_out(
    hold: HomeForTests, session: Session, world: World
) -> None:
    keeper = hold.keeper_pid(session)
    out = world.work / "who"
    script = world.work / "orphan"
    script.write_text(
        f"trap '' HUP\nkill -9 {keeper}\nwhile kill -0 {keeper} 2>/dev/null; do sleep 0.05; done\n"
        f"env -i PATH=$PATH HOLDFAST_HOME={world.home} {WHOAMI} > {out} 2>&1\n"
    )
    if isolated(session):
        assert not reaches(session, f"kill -9 {keeper}")
        assert alive(keeper)
        return
    with contextlib.suppress(HoldfastError):  # its keeper may be gone before it has answered
        session.send(f"setsid -f sh {script}", enter=True)
    assert name_in(out) == world.me
    session.stop(0)


# -- what it can reach ---------------------------------------------------------------------------------------------

OUT = {
    "the keys": "cat {key}",
    "another session's token": "cat {home}/sessions/{other}/manifest.json",
    "another session's output": "cat {home}/sessions/{other}/out/*",
    "another keeper's socket": "test -S {home}/sessions/{other}/keeper.sock",
    "the folders of the other sessions": "ls {home}/sessions",
    "another process's variables": "cat /proc/{bystander}/environ",
    "another process's memory": "head -c 0 /proc/{bystander}/mem",
    "another process, by ptrace": "{python} ptrace.py {bystander}",
    "another process, by signal": "kill -0 {bystander}",
    "the user's start-up files": "test -e {user}/.profile",
}


@pytest.mark.parametrize("what", OUT)
def test_the_same_user_reaches_what_is_the_user_s_and_an_isolated_program_does_not(
    session: Session, world: World, what: str
) -> None:
    user = os.path.expanduser("~")
    if "ptrace" in what and not isolated(session) and os.geteuid() and not _ptrace_allowed():
        pytest.skip("yama allows no ptrace of others here")
    (world.work / "ptrace.py").write_text(PTRACE)
    until(lambda: any((world.home / "sessions" / world.other.id).glob("out*")))
    words = OUT[what].format(
        home=world.home,
        key=world.key,
        other=world.other.id,
        bystander=world.bystander,
        python=sys.executable,
        user=user,
    )
    assert reaches(session, words) is not isolated(session)


def test_what_is_inside_cannot_signal_stop_or_outlive_its_session(
    hold: HomeForTests, session: Session, world: World
) -> None:
    """A process that left its terminal, its group and its parent is still the session's, and ends with it."""
    mark = "1234567"
    assert reaches(session, f"setsid -f sh -c 'setsid -f sleep {mark}'; true")
    found = until(lambda: [p.pid for p in session.status().processes if mark in p.command], timeout=WAIT_S)
    session.stop(0)
    until(lambda: not any(alive(pid) for pid in found), timeout=WAIT_S)
    os.kill(world.bystander, signal.SIGCONT)
    assert alive(world.bystander)


def _ptrace_allowed() -> bool:
    try:
        return Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip() == "0"
    except OSError:
        return True
