"""Homes, sockets and project files of other users: refused before anything is read from or sent to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.home import HomeForTests

OTHER = 54321  # a user who is nobody on this machine
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


def refused(hold: HomeForTests, home: Path, *words: str) -> str:
    told = hold(*words, "--json", HOLDFAST_HOME=str(home))
    assert told.code == 4, told.out + told.err
    assert told.json["error"]["code"] == "not_allowed"
    return str(told.json["error"]["message"])


@needs_root
@pytest.mark.parametrize("words", [("ls",), ("run", "-d"), ("backup", "x.tar.gz"), ("up",)])
def test_a_home_of_another_user_is_refused_and_left_as_it_was(
    hold: HomeForTests, tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    os.chown(theirs, OTHER, OTHER)
    assert f"belongs to uid {OTHER}" in refused(hold, theirs, *words)
    assert list(theirs.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_a_home_that_others_can_write_is_refused(hold: HomeForTests, tmp_path: Path, mode: int) -> None:
    home = tmp_path / "open"
    home.mkdir()
    home.chmod(mode)
    assert "can write to" in refused(hold, home, "ls")
    home.chmod(0o755)
    assert hold("doctor", "--json", HOLDFAST_HOME=str(home)).code in (0, 1)


def test_a_home_that_anyone_can_replace_is_refused(hold: HomeForTests, tmp_path: Path) -> None:
    home = tmp_path / "open" / "home"
    home.mkdir(parents=True, mode=0o700)
    home.parent.chmod(0o777)
    assert "any user can replace" in refused(hold, home, "ls")
    link = tmp_path / "link"
    link.symlink_to(home)
    assert "any user can replace" in refused(hold, link, "ls")


_IMPOSTOR = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.bind(sys.argv[1])
os.setuid(int(sys.argv[2]))
sock.listen()
print("up", flush=True)
sock.settimeout(20)
client, _ = sock.accept()
client.settimeout(20)
print(client.recv(100_000).hex() or "nothing", flush=True)
"""


@needs_root
def test_nothing_is_sent_to_another_users_process_behind_the_homes_socket(hold: HomeForTests) -> None:
    words = [sys.executable, "-c", _IMPOSTOR, str(hold.path / "host.sock"), str(OTHER)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as theirs:
        assert theirs.stdout is not None
        assert theirs.stdout.readline() == b"up\n"
        assert f"of uid {OTHER}" in refused(hold, hold.path, "run", "-d")
        assert theirs.stdout.readline() == b"nothing\n"
    (hold.path / "host.sock").unlink()


STARTS = '[session.planted]\ncommand = "sleep 1000"\n[project]\nname = "planted"\n'


@needs_root
def test_a_project_file_of_another_user_in_a_shared_folder_counts_for_nothing(
    hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    mine = shared / "mine"
    mine.mkdir(parents=True)
    shared.chmod(0o1777)
    planted = shared / "holdfast.toml"
    planted.write_text(STARTS)
    os.chown(planted, OTHER, OTHER)
    monkeypatch.chdir(mine)
    assert hold("up").code == 0
    assert hold("up", "planted").code == 3
    assert hold("ls", "--json").json == []
    assert hold("task", "ls").code != 4
    os.chown(planted, 0, 0)
    assert hold("up", "planted").code == 0
    assert [s["name"] for s in hold("ls", "--json").json] == ["planted"]


@needs_root
def test_a_project_file_of_another_user_in_a_folder_of_theirs_is_refused_by_name(
    hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "holdfast.toml").write_text(STARTS)
    for path in (theirs, theirs / "holdfast.toml"):
        os.chown(path, OTHER, OTHER)
    monkeypatch.chdir(theirs)
    for words in (("up",), ("up", "planted"), ("task", "ls")):
        assert f"{theirs}/holdfast.toml belongs to uid {OTHER}" in refused(hold, hold.path, *words)
    assert hold("ls", "--json").json == []
    assert hold("task", "ls", "--project", "x").code == 3  # a project that is named needs no file


def test_a_project_file_that_is_a_pipe_keeps_nobody_waiting(
    hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "holdfast.toml")
    monkeypatch.chdir(tmp_path)
    told = hold("up", timeout=30)
    assert (told.code, told.err.count("\n")) == (1, 1)
    assert "not a regular file" in told.err
    assert hold("work", "ls", timeout=30).code == 0
    assert hold("task", "ls", timeout=30).code in (0, 3)


def test_no_folder_above_the_home_is_given_to_an_isolated_program(hold: HomeForTests, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for words in (("--write", str(tmp_path), "--cwd", str(work)), ("--cwd", str(tmp_path))):
        told = hold("run", "-d", "--isolate", *words, "--json", "--", "true")
        assert (told.code, told.json["error"]["code"]) == (2, "invalid"), told.out
        assert "is below" in told.json["error"]["message"]
