"""Looking at an attempt's files on a real disk: with git and without, and what must not fool or stop the look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.client.files import snapshot
from tests.support.needs import program


def git(root: Path, *words: str) -> None:
    about = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    subprocess.run([program("git"), *about, *words], cwd=root, check=True, capture_output=True, timeout=60)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "src" / "a.py").write_text("one\ntwo\n")
    (made / "src" / "b.py").write_text("b\n")
    (made / "notes.txt").write_text("n\n")
    return made


def paths(told: dict, kind: str) -> list[str]:
    return [one["path"] for one in told[kind]]


def edit(root: Path) -> None:
    (root / "src" / "a.py").write_text("one\n2\n")
    (root / "src" / "b.py").unlink()
    (root / "src" / "new.py").write_text("new\n")
    (root / "logo.png").write_bytes(b"\x89PNG\x00\x01")


@pytest.mark.parametrize("kind", ["no git", "clean git", "dirty git"])
def test_what_was_made_changed_and_removed_is_told_and_its_patch_applies(root: Path, tmp_path: Path, kind: str) -> None:
    if kind != "no git":
        git(root, "init")
        git(root, "add", ".")
        git(root, "commit", "-m", "first")
    if kind == "dirty git":
        (root / "src" / "a.py").write_text("one\ntwo\nnot committed\n")
    packed = snapshot.take(str(root), ["**"])
    subprocess.run(["cp", "-r", str(root), str(tmp_path / "copy")], check=True, timeout=60)
    edit(root)
    told, patch = snapshot.outcome(packed)
    assert paths(told, "created") == ["logo.png", "src/new.py"]
    assert paths(told, "changed") == ["src/a.py"]
    assert paths(told, "deleted") == ["src/b.py"]
    assert told["unpatched"] == ["logo.png"]
    text = b"".join(part for part in patch.partition(b"diff --git a/src/a.py")[1:])  # without the binary file's part
    done = subprocess.run(
        [program("git"), "apply", "-"], cwd=tmp_path / "copy", input=text, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, (done.stderr, patch)
    assert (tmp_path / "copy/src/a.py").read_text() == (root / "src/a.py").read_text()
    assert not (tmp_path / "copy/src/b.py").exists()


def test_another_process_finds_the_same_changes_later(root: Path, tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(snapshot.take(str(root), ["**"]))
    edit(root)
    program = "import sys, json; from holdfast.client.files import snapshot; print(json.dumps(snapshot.outcome(open(sys.argv[1], 'rb').read())[0]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "before")], capture_output=True, check=True, timeout=60
    )
    import json

    assert json.loads(done.stdout) == snapshot.outcome((tmp_path / "before").read_bytes())[0]


def test_an_edit_that_keeps_size_and_time_is_seen(root: Path) -> None:
    packed = snapshot.take(str(root), ["**"])
    file = root / "src" / "a.py"
    times = file.stat()
    file.write_text("ONE\ntwo\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert paths(snapshot.outcome(packed)[0], "changed") == ["src/a.py"]


def test_files_outside_of_the_scope_are_nobodys_change_and_expected_ones_are_looked_at(root: Path) -> None:
    git(root, "init")
    (root / ".gitignore").write_text("build/\n")
    packed = snapshot.take(str(root), ["src/**"], ["build/app.bin"])
    (root / "notes.txt").write_text("changed\n")
    (root / "build").mkdir()
    for name in ("app.bin", "other.bin"):
        (root / "build" / name).write_text("x")
    (root / "src" / "x.py").write_text("x\n")
    told, _ = snapshot.outcome(packed, ["build/app.bin"])
    assert paths(told, "created") == ["build/app.bin", "src/x.py"]
    assert paths(told, "changed") == []


@pytest.mark.parametrize("with_git", [False, True])
def test_gits_folder_ignored_files_and_the_home_are_left_out(root: Path, with_git: bool) -> None:
    if with_git:
        git(root, "init")
        (root / ".gitignore").write_text("*.log\n")
    home = root / ".hold"
    home.mkdir()
    packed = snapshot.take(str(root), ["**"], home=str(home))
    (home / "work.db").write_text("x")
    (root / ".git" if with_git else home).joinpath("thing").write_text("x")
    (root / "out.log").write_text("x")
    told, _ = snapshot.outcome(packed, home=str(home))
    assert paths(told, "created") == ([] if with_git else ["out.log"])


def test_pipes_links_and_odd_names_do_not_stop_the_look(root: Path) -> None:
    packed = snapshot.take(str(root), ["**"])
    os.mkfifo(root / "pipe")
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to("..")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.txt")).write_text("x\n")
    (root / "ä b\n.txt").write_text("x\n")
    told, patch = snapshot.outcome(packed)
    assert paths(told, "created") == sorted(["loop", "up", "\\xff.txt", "ä b\n.txt"])
    assert b"deadbeef" not in patch


def test_limits_are_kept_and_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "SCOPE_FILES_MAX", 2)
    monkeypatch.setattr(snapshot, "SCOPE_FILE_BYTES_MAX", 3)
    packed = snapshot.take(str(root), ["**"])
    (root / "src" / "a.py").write_text("a longer one than before\n")
    (root / "zzz").write_text("z")
    told, patch = snapshot.outcome(packed)
    assert paths(told, "created") == []
    assert paths(told, "changed") == ["src/a.py"]
    assert told["unpatched"] == ["src/a.py"]
    assert len(told["limits"]) == 2
    assert b"its content was not kept" in patch


def test_a_long_patch_names_what_it_leaves_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "PATCH_BYTES_MAX", 250)
    packed = snapshot.take(str(root), ["**"])
    (root / "src" / "a.py").write_text("x\n")
    (root / "src" / "c.py").write_text("long line\n" * 100)
    told, patch = snapshot.outcome(packed)
    assert told["unpatched"] == ["src/c.py"]
    assert b"+x" in patch
    assert b"src/c.py: left out" in patch


@pytest.mark.parametrize("with_git", [True, False])
def test_a_folder_that_became_a_link_out_of_the_project_is_not_followed(
    root: Path, tmp_path: Path, with_git: bool
) -> None:
    if with_git:
        git(root, "init")
        git(root, "add", "-A")
        git(root, "commit", "-m", "all")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.py").write_text("not of this project\n")
    before = snapshot.take(str(root), ["**"])
    for name in ("a.py", "b.py"):
        (root / "src" / name).unlink()
    (root / "src").rmdir()
    (root / "src").symlink_to(elsewhere)
    told, patch = snapshot.outcome(before)
    assert (paths(told, "created"), paths(told, "changed")) == (["src"], [])
    assert paths(told, "deleted") == ["src/a.py", "src/b.py"]
    assert b"not of this project" not in patch


def test_a_tree_that_is_a_thousand_folders_deep_is_looked_at(root: Path) -> None:
    before = snapshot.take(str(root), ["**"])
    subprocess.run(["mkdir", "-p", "d/" * 1100], cwd=root, check=True, timeout=60)
    (root / ("d/" * 1100 + "file")).write_text("x\n")
    try:
        told, _ = snapshot.outcome(before)
    finally:
        subprocess.run(["rm", "-rf", "d"], cwd=root, check=True, timeout=60)  # too deep for whoever tidies up later
    assert paths(told, "created") == ["d/" * 1100 + "file"]


def test_a_link_that_was_made_is_in_the_patch_as_git_writes_it(root: Path, tmp_path: Path) -> None:
    before = snapshot.take(str(root), ["**"])
    (root / "link").symlink_to("notes.txt")
    _, patch = snapshot.outcome(before)
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init")
    (tmp_path / "patch").write_bytes(patch)
    git(other, "apply", str(tmp_path / "patch"))
    assert os.readlink(other / "link") == "notes.txt"
