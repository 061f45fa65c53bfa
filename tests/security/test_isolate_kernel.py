"""The kernel as an isolated program sees it: nothing of the machine can be set from inside, by root or by anyone else."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Session
from holdfast.model.sessions import isolation
from holdfast.model.sessions.isolation import Place, View
from holdfast.system import bubblewrap, bubblewrap_entry
from tests.support.home import HomeForTests, read_all
from tests.support.needs import needs

pytestmark = [pytest.mark.home("file"), needs("bwrap")]

WAIT_S = 60  # a bound on the machine's worst day, never the time it takes
ORDINARY = os.getuid() or 54321  # a uid without an account where the tests run as root
as_root = pytest.mark.skipif(not bubblewrap_entry.kernels_root(), reason="only root isolates by becoming another user")

# Opened for writing, never written to. What a process says of itself is its own to set, and left out.
WALK = """
import os
def writable(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW))
        return True
    except OSError:
        return False
seen = 0
for top in ("/proc", "/proc/self/net", "/sys"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdigit()]
        if os.access(folder, os.W_OK):
            print("folder", folder)
        for name in files:
            seen += 1
            if writable(os.path.join(folder, name)):
                print("file", os.path.join(folder, name))
print("seen", seen)
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir(mode=0o700)
    return folder


def said(hold: HomeForTests, work: Path, *command: str, **options: Any) -> str:
    """What an isolated program prints."""
    s = hold.run(*command, isolate=True, cwd=str(work), pipes=True, **options)
    assert s.wait(exit=True, timeout=WAIT_S).event != "timeout"
    return read_all(s).decode()


def python(hold: HomeForTests, work: Path, source: str, **options: Any) -> str:
    return said(hold, work, sys.executable, "-c", source, **options)


# -- files of the kernel


def test_nothing_in_proc_and_sys_can_be_written(hold: HomeForTests, work: Path) -> None:
    told = python(hold, work, WALK, read=["/sys"]).splitlines()
    assert int(told[-1].split()[1]) > 1000, told  # it did look
    assert told[:-1] == []


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder of an ordinary user's, where it can get at it."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-ordinary-"))
    for name in ("work", "home", "door", "exchange"):
        (folder / name).mkdir()
        os.chown(folder / name, ORDINARY, -1)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def ordinary(theirs: Path, *command: str, read: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    """Run in the product's own walls, as an ordinary user who may not even read our Python."""
    machine = bubblewrap.look()._replace(install=())
    work, home, door, exchange = (str(theirs / name) for name in ("work", "home", "door", "exchange"))
    options = isolation.options(
        View(work, read=read), machine, Place(home, door, exchange, work), {"PATH": "/usr/bin:/bin"}
    )
    switch: dict[str, Any] = {"user": ORDINARY, "group": ORDINARY, "extra_groups": []} if os.getuid() == 0 else {}
    words, fds = bubblewrap_entry.words({"path": bubblewrap.find(), "options": options, "command": list(command)})
    try:
        return subprocess.run(
            words,
            **switch,
            pass_fds=fds,
            capture_output=True,
            cwd="/",
            timeout=WAIT_S,
            check=False,
        )
    finally:
        for fd in fds:
            os.close(fd)


def test_nothing_in_proc_and_sys_can_be_written_by_an_ordinary_user(theirs: Path) -> None:
    look = (
        "find /proc /sys -path '/proc/[0-9]*' -prune -o -type f -writable -print 2>/dev/null; find /sys | wc -l; id -u"
    )
    done = ordinary(theirs, "/bin/sh", "-c", look, read=("/sys",))
    *writable, count, uid = done.stdout.decode().split()
    assert (writable, int(count) > 1000, uid) == ([], True, str(ORDINARY)), done.stderr


# With namespaces of its own a program may mount; what was covered for it stays covered.
MOUNTS = ("-o remount,rw,bind /proc/sys", "-t proc proc /tmp", "-t sysfs sysfs /tmp", "--bind / /tmp -o rw")
TRIES = "".join(
    f"{own}mount {words} && sh -c 'ls /tmp; : > /proc/sys/kernel/core_pattern && echo out; : > /tmp/etc/x && echo out'\n"
    for own in ("", "unshare --user --map-root-user --mount --pid --fork --net ")
    for words in MOUNTS
)


def test_the_kernel_s_switches_cannot_be_uncovered(hold: HomeForTests, work: Path) -> None:
    assert "out" not in said(hold, work, "sh", "-c", f"({TRIES}) 2> /dev/null; true").split()


def test_the_kernel_s_switches_cannot_be_uncovered_by_an_ordinary_user(theirs: Path) -> None:
    own = "unshare --user --map-root-user --mount true && echo may"
    done = ordinary(theirs, "/bin/sh", "-c", f"{own}; ({TRIES} umount /proc/sys && echo out) 2> /dev/null; true")
    told = done.stdout.decode().split()
    assert "may" in told, done.stderr  # it has namespaces of its own, where that is so outside
    assert "out" not in told


@pytest.mark.parametrize("words", [["--write", "/sys"], ["--write", "/sys/kernel"], ["--cwd", "/sys/kernel"]])
def test_the_kernel_s_file_systems_are_never_handed_over(hold: HomeForTests, work: Path, words: list[str]) -> None:
    refused = hold("run", "-d", "--isolate", "--cwd", str(work), *words, "--", "true")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "is a kernel file system" in refused.err


# -- whose it is


def status_of(session: Session, name: str) -> list[str]:
    text = Path(f"/proc/{session.status().pid}/status").read_text()
    return next(line.split()[1:] for line in text.splitlines() if line.startswith(name))


@as_root
def test_what_root_isolates_is_another_user_outside_and_root_to_itself(hold: HomeForTests, work: Path) -> None:
    (work / "secret").write_text("mine\n")
    (work / "secret").chmod(0o600)
    own = "id -u; cat secret; echo more >> secret; mkdir made; cat /etc/shadow; echo read $?; cat"
    first, second = (hold.run("sh", "-c", own, isolate=True, cwd=str(work), name=n) for n in ("first", "second"))
    for s in (first, second):
        assert s.wait(input=True, timeout=WAIT_S).event != "timeout"
    assert read_all(first).decode().split()[:2] == ["0", "mine"]
    assert "read 1" in read_all(first).decode()
    users = [status_of(s, "Uid:") + status_of(s, "Gid:") for s in (first, second)]
    assert all(len(set(ids)) == 1 and int(ids[0]) >= 2_100_000_000 for ids in users), users
    assert users[0] != users[1]
    assert (work / "secret").read_text() == "mine\nmore\nmore\n"
    assert (work / "made").stat().st_uid == 0  # what it makes is root's, as before


@as_root
def test_its_terminal_and_pipes_can_be_opened_by_name(hold: HomeForTests, work: Path) -> None:
    source = "echo out > /dev/stdout; echo err > /dev/stderr; echo typed | cat /dev/stdin; echo seen $?"
    assert {"out", "typed", "seen"} <= set(said(hold, work, "sh", "-c", source).split())
    s = hold.run("sh", "-c", f"{source}; echo tty > /dev/tty; cat", isolate=True, cwd=str(work))
    assert s.wait(text="tty", timeout=WAIT_S).event == "text"
    assert "ermission" not in read_all(s).decode()


@as_root
def test_a_folder_that_only_root_reaches_is_shown(hold: HomeForTests, tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "project"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    (tmp_path / "closed").chmod(0o700)
    assert said(hold, inner, "sh", "-c", "cat file; touch new; ls").split() == ["xfile", "new"]


# -- other ways out


def test_the_kernel_s_keys_are_out_of_reach(hold: HomeForTests, work: Path) -> None:
    """They belong to a uid: by its number a key could be read from inside, in whatever namespace."""
    known = {"x86_64": 248, "aarch64": 217, "riscv64": 217}
    first = known.get(os.uname().machine)
    if first is None:
        pytest.skip("the numbers of this machine's system calls are not known here")
    ask = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True)\n"
        f"for n in range({first} , {first} + 3):\n"
        "    c.syscall(n, 0, -4, 0, 0, 0); print(ctypes.get_errno())"
    )
    assert python(hold, work, ask).split() == [str(errno.ENOSYS)] * 3


def test_control_groups_cannot_be_mounted(theirs: Path) -> None:
    """An ordinary user has groups of its own, with what it runs outside: it could freeze or kill that."""
    own = "unshare --user --map-root-user --mount"
    tries = (f"{own} --cgroup true", f"{own} mount -t cgroup2 none /tmp", f"{own} mount -t cgroup -o pids none /tmp")
    whole = f"{own} echo may; " + "; ".join(f"{one} && echo out" for one in tries)
    told = ordinary(theirs, "/bin/sh", "-c", whole)
    assert told.stdout.split() == [b"may"], told.stderr


def test_sockets_without_a_file_that_were_made_outside_are_out_of_reach(hold: HomeForTests, work: Path) -> None:
    import ctypes

    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 6:
        pytest.skip("this kernel cannot keep a program from them (Linux 6.12 with Landlock can)")
    name = f"holdfast-{os.getpid()}-{work.parent.name}"
    ask = (
        "import socket, sys\n"
        f"for name in ({name!r}, 'own'):\n"
        "    if name == 'own': l = socket.socket(socket.AF_UNIX); l.bind('\\0own-' + sys.argv[1]); l.listen(); name = 'own-' + sys.argv[1]\n"
        "    try: socket.socket(socket.AF_UNIX).connect('\\0' + name); print('reached')\n"
        "    except PermissionError: print('refused')"
    )
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind("\0" + name)
        outside.listen()
        told = said(hold, work, sys.executable, "-c", ask, name)
    assert told.split() == ["refused", "reached"]


def test_bubblewrap_s_own_process_inside_leads_nowhere(hold: HomeForTests, work: Path) -> None:
    """The program may look at it and stop it with ptrace: it has no descriptor and no folder that is not inside."""
    told = said(
        hold,
        work,
        "sh",
        "-c",
        "ls -l /proc/1/fd | sed -n 's/.* -> //p'; readlink /proc/1/root /proc/1/cwd; cat /proc/1/status",
    )
    links = [line for line in told.splitlines() if line.startswith("/") or "anon_inode" in line or ":[" in line]
    assert all(line in ("/", str(work)) or line.startswith(("pipe:", "anon_inode:", "/dev/")) for line in links), links
    assert "CapEff:\t0000000000000000" in told


def test_devices_are_the_harmless_ones(hold: HomeForTests, work: Path) -> None:
    listed = set(said(hold, work, "ls", "/dev").split())
    harmless = {"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd", "console", "core"}
    assert listed <= harmless | {"stdin", "stdout", "stderr"}
    assert shlex.split(said(hold, work, "ls", "/dev/shm", "/dev/pts"))[:1] == ["/dev/pts:"]
