"""The process tree below a pid, whatever the programs in it are called and however they were forked."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.system import kernel, process_tree
from tests.support.ptyproc import DEADLINE_S, SAMPLE_S

# A tree of known shape below a subreaper that ends all of it when its stdin closes. It says when it stands.
_TREE = """
import ctypes, glob, os, signal, sys, threading
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
def child(name, *below):
    if os.fork() == 0:
        open('/proc/self/comm', 'w').write(name)
        for inner in below: child(*inner)
        os.write(ready, b'.')
        signal.pause()
def daemon():
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            child('daemon')
        os._exit(0)
wait, ready = os.pipe()
child('a) S 1 (b', ('leaf',))
child('role', ('below the role',))
thread = threading.Thread(target=child, args=('of a thread',)); thread.start(); thread.join()
daemon()
for _ in range(6): os.read(wait, 1)
print('up', flush=True)
"""

# A subreaper whose grandchildren lose their parents all the time. It prints each one's pid.
_ORPHANS = """
import ctypes, os, signal, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
left = 150
for _ in range(150):
    if os.fork() == 0:
        pid = os.fork()
        if pid == 0: signal.pause()
        os.write(1, b'%d\\n' % pid)
        time.sleep(0.003)
        os._exit(0)
    time.sleep(0.001)
    while os.waitpid(-1, os.WNOHANG)[0]: left -= 1
while left: left -= bool(os.wait())
print('0', flush=True)
"""

_END = """
import glob, os, sys
sys.stdin.read()
while True:
    for path in glob.glob(f'/proc/{os.getpid()}/task/*/children'):
        for pid in open(path).read().split(): os.kill(int(pid), 9)
    try: os.wait()
    except ChildProcessError: break
"""


@pytest.fixture
def root() -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", _TREE + _END], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process.pid


def named(rows: list[tuple[int, int, str, int]]) -> dict[str, tuple[int, int, str, int]]:
    found = {}
    for row in rows:
        stat = process_tree.read_stat(row[0])
        assert stat is not None
        found[stat.comm if stat.state != "Z" else "zombie"] = row
    return found


def settled(root: int) -> list[tuple[int, int, str, int]]:
    """The tree, once the two processes that only forked are zombies."""
    end = time.monotonic() + DEADLINE_S
    while True:
        rows = process_tree.descendants(root)
        if sum(state == "Z" for _, _, state, _ in rows) == 2 or time.monotonic() > end:
            return rows
        time.sleep(SAMPLE_S)


@pytest.fixture(params=["the kernel's list of children", "a scan of all processes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to find children, also on a kernel that has the list."""
    if request.param == "a scan of all processes":
        monkeypatch.setattr(process_tree, "_kernel_lists_children", lambda: False)
    elif not process_tree._kernel_lists_children():
        pytest.skip("this kernel keeps no list of children")
    return str(request.param)


def test_every_descendant_is_found_with_its_parent_and_start(root: int, way: str) -> None:
    found = named(settled(root))
    assert set(found) == {"a) S 1 (b", "leaf", "role", "below the role", "of a thread", "daemon", "zombie"}
    assert found["leaf"][1] == found["a) S 1 (b"][0]
    assert found["of a thread"][1] == root
    assert found["daemon"][1] == root  # orphaned, and handed to the subreaper
    assert found["zombie"][2] == "Z"
    for pid, ppid, _, started in found.values():
        stat = process_tree.read_stat(pid)
        assert stat is not None
        assert (stat.ppid, stat.started) == (ppid, started)


def test_parents_come_before_their_children(root: int, way: str) -> None:
    seen = {root}
    for pid, ppid, _, _ in settled(root):
        assert ppid in seen
        seen.add(pid)


def test_a_walk_ends_at_the_pids_it_is_told_to_stop_at(root: int, way: str) -> None:
    role = named(settled(root))["role"][0]
    found = named(process_tree.descendants(root, frozenset({role})))
    assert "role" not in found
    assert "below the role" not in found
    assert "leaf" in found


def test_other_roles_and_what_is_below_them_are_no_members(root: int, way: str) -> None:
    rows = settled(root)
    found = named(rows)
    role = {(found["role"][0], found["role"][3])}
    own = {row[0] for row in rows} - {found[name][0] for name in ("role", "below the role")}
    assert set(process_tree.members(root, lambda: role)) == own
    assert set(process_tree.forest([root], lambda: role)[root]) == own


def test_one_that_becomes_a_role_during_the_walk_is_no_member(
    root: int, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = named(settled(root))["role"]
    walk = process_tree._walk

    def walked(*args: Any) -> Any:
        seen = walk(*args)
        (tmp_path / f"{role[0]}.{role[3]}").touch()  # a host that was started in the session says so only now
        return seen

    monkeypatch.setattr(process_tree, "_walk", walked)
    assert role[0] not in process_tree.members(root, lambda: kernel.registered(str(tmp_path)))
    (tmp_path / f"{role[0]}.{role[3]}").unlink()
    assert role[0] not in process_tree.forest([root], lambda: kernel.registered(str(tmp_path)))[root]


def test_a_role_is_known_by_its_start_also_where_a_dead_one_had_its_pid(tmp_path: Path) -> None:
    mine = os.path.basename(kernel.register(str(tmp_path)))
    pid, started = os.getpid(), kernel.start_time(os.getpid())
    assert mine == f"{pid}.{started}"
    for other in (started - 5, started + 5):
        (tmp_path / f"{pid}.{other}").touch()
    assert (pid, started) in kernel.registered(str(tmp_path))


def test_a_pid_without_children_or_without_life_has_no_descendants() -> None:
    assert process_tree.descendants(0x7FFFFFFE) == []
    with subprocess.Popen(["sleep", "100"]) as process:
        assert process_tree.descendants(process.pid) == []
        process.kill()


def test_no_orphan_is_lost_while_its_parent_dies(way: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _ORPHANS + _END], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        announced: list[int] = []
        while 0 not in announced:
            announced += map(int, os.read(process.stdout.fileno(), 4096).split())
            found = {pid for pid, _, _, _ in process_tree.descendants(process.pid)}
            assert set(announced) - {0} <= found
        assert len(announced) == 151
