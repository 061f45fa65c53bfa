"""The program's cgroup leaf, against the kernel's own v2 hierarchy and against folders that only look like one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.system import cgroup
from tests.support.home import HomeForTests, until

ROOTS = (Path(cgroup.ROOT), Path(cgroup.ROOT, "unified"))
V2 = next((root for root in ROOTS if (root / "cgroup.controllers").exists()), None)


@pytest.fixture
def group() -> Iterator[Path]:
    """A group of the test's own in the kernel's v2 hierarchy."""
    if V2 is None or not os.access(V2, os.W_OK):
        pytest.skip("no v2 hierarchy to make a group in")
    path = V2 / f"holdfast-test-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as e:
        pytest.skip(f"no group can be made: {e}")
    yield path
    for leaf in [*path.iterdir(), path]:
        if leaf.is_dir():
            until(lambda leaf=leaf: not (leaf / "cgroup.procs").read_text(), timeout=60)  # type: ignore[misc]
            leaf.rmdir()


def only_v2(monkeypatch: pytest.MonkeyPatch, own: Path) -> None:
    """As on a machine without v1, where this process is in `own`."""
    monkeypatch.setattr(cgroup, "_own_paths", lambda: {"": f"{own}/"})


def test_a_folder_that_only_looks_like_a_hierarchy_holds_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the folder that v1 hierarchies are mounted in, which root may write to."""
    own = tmp_path / "own"
    own.mkdir()
    only_v2(monkeypatch, own)
    assert cgroup.make_leaf("ses_x", 100, 1 << 30) == []
    assert [p.name for p in tmp_path.iterdir()] == ["own"]
    assert list(own.iterdir()) == []


def test_what_should_be_above_a_leaf_is_never_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_own_paths", lambda: {"pids": str(tmp_path / "a/b"), "": str(tmp_path / "c/d")})
    assert cgroup.make_leaf("ses_x", 100, 0) == []
    assert list(tmp_path.iterdir()) == []


def test_the_root_of_a_hierarchy_has_its_leaves_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for root in ROOTS:
        only_v2(monkeypatch, root)
        assert cgroup.possible_leaves("ses_x") == [str(root / "holdfast-ses_x")]
    only_v2(monkeypatch, ROOTS[0] / "user" / "own")
    assert cgroup.possible_leaves("ses_x") == [str(ROOTS[0] / "user" / "holdfast-ses_x")]


def test_a_leaf_of_v2_has_the_limits_that_its_controllers_allow(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose controllers belong to v1, or were not delegated, is no leaf, and leaves nothing behind."""
    (group / "own").mkdir()
    only_v2(monkeypatch, group / "own")
    asked = {"pids": 77, "memory": 1 << 30}
    leaves = cgroup.make_leaf("ses_x", asked["pids"], asked["memory"])
    can = [name for name in asked if name in (group / "cgroup.controllers").read_text().split()]
    assert leaves == ([str(group / "holdfast-ses_x")] if can else [])
    assert (group / "holdfast-ses_x").exists() is bool(can)
    assert cgroup.unheld(leaves, asked) == [name for name in asked if name not in can]
    assert cgroup.make_leaf("ses_x", asked["pids"], asked["memory"]) == leaves  # a second generation's
    cgroup.remove(leaves)
    assert not (group / "holdfast-ses_x").exists()


def test_a_tree_is_moved_into_a_leaf_whole_and_what_it_forks_stays_there(group: Path) -> None:
    leaf = group / "holdfast-ses_x"
    leaf.mkdir()
    source = "import subprocess, sys; p = subprocess.Popen(['sleep', '1000']); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        cgroup.join_tree([str(leaf)], program.pid)
        assert set((leaf / "cgroup.procs").read_text().split()) == {str(program.pid), str(child)}
        for pid in (program.pid, child):
            assert cgroup.leaves_of(pid, "ses_x") == [str(leaf)]
        cgroup.remove([str(leaf)])
        assert leaf.exists()  # somebody is in it: the kernel keeps it
        (leaf / "cgroup.kill").write_text("1")
        assert program.wait(60) == -9
    until(lambda: "populated 0" in (leaf / "cgroup.events").read_text(), timeout=60)
    cgroup.remove([str(leaf)])
    assert not leaf.exists()


def test_a_session_killed_through_its_cgroup_is_told_as_killed(hold: HomeForTests, group: Path) -> None:
    """By a manager of the machine, which asks nobody: the keeper is not in that group, and says what it saw."""
    session = hold.run("sh", "-c", "sleep 1000 & echo $!; wait")
    assert session.wait(text=r"\d+\r\n", timeout=60).event == "text"
    leaf = group / f"holdfast-{session.id}"
    leaf.mkdir()
    main = session.status().pid
    assert main is not None
    cgroup.join_tree([str(leaf)], main)
    assert str(leaf) in hold.host.call("status", session=session.id)["cgroup"]
    assert len((leaf / "cgroup.procs").read_text().split()) == 2
    (leaf / "cgroup.kill").write_text("1")
    assert session.wait(exit=True, timeout=60).event == "exit"
    until(lambda: session.status().state == "exited", timeout=60)
    ended = session.status().exit
    assert ended is not None
    assert (ended.signal, ended.known) == ("SIGKILL", True)


def test_a_limit_that_is_not_enforced_is_said_when_it_is_asked_for(hold: HomeForTests) -> None:
    """A host without any cgroups: the folder they are mounted in is an empty one that it may write to."""
    hide = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
    words = [sys.executable, "-m", "holdfast.cli.main", "run", "-d", "--limit", "pids=77", "--", "sleep", "1000"]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hide, "sh", *words],
        env=hold.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no mounts of one's own here: {done.stderr}")
    assert "does not enforce --limit pids" in done.stderr
    session = done.stdout.split()[0]
    about = hold.host.call("status", session=session)
    assert (about["state"], about["unenforced"], about["cgroup"]) == ("live", ["pids"], [])
    inside = Path(f"/proc/{hold.daemon_pid()}/root{cgroup.ROOT}")
    assert list(inside.iterdir()) == []
