"""Backup and restore: taken while everything runs, brought back truthfully, and nothing else let in."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.admin import backup
from tests.support.home import HOLD, HomeForTests, read_all, until

Member = tuple[str, bytes, bytes]  # name, type, data or link target


@pytest.fixture
def other(tmp_path: Path) -> Iterator[HomeForTests]:
    """A second home, not made yet."""
    home = HomeForTests(tmp_path / "other")
    home.path.rmdir()
    yield home
    home.close()


def crafted(path: Path, members: list[Member], header: object = None) -> Path:
    """A tar.gz as an attacker, or a bad disk, might hand it in."""
    with tarfile.open(path, "w:gz") as tar:
        about = json.dumps(header or {"holdfast_backup": 1, "created_at": "", "home": "/h"}).encode()
        for name, kind, data in [(backup.HEADER, tarfile.REGTYPE, about), *members]:
            member = tarfile.TarInfo(name)
            member.type = kind
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                member.linkname = data.decode()
                tar.addfile(member)
            else:
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path


def test_a_home_comes_back_elsewhere_with_everything_and_says_truthfully_what_is_gone(
    hold: HomeForTests, other: HomeForTests, tmp_path: Path
) -> None:
    ended = hold.run("sh", "-c", "echo finished; exit 3", name="ended")
    assert ended.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: ended.status().state == "exited")
    shell = hold.run("bash", name="shell")
    done = shell.exec("echo from exec; false")
    running = hold.run("sh", "-c", "echo started; while read x; do echo got $x; done", name="running")
    assert running.wait(text="started", timeout=20).event != "timeout"
    until(lambda: shell.status().activity.kind == "at_prompt")  # and has printed it
    output = read_all(shell)

    saved = hold("backup", str(tmp_path / "b.tgz"), "--json")
    assert saved.code == 0, saved.err
    assert saved.json["sessions"] == 3
    assert stat.S_IMODE(os.stat(tmp_path / "b.tgz").st_mode) == 0o600
    assert running.status().state == "live"

    back = other("restore", str(tmp_path / "b.tgz"), "--json")
    assert back.code == 0, back.err
    assert (back.json["sessions"], back.json["moved_to"], back.json["from_home"]) == (3, None, str(hold.path))
    seen = {s["name"]: s for s in other("ls", "-a", "--json").json}
    assert (seen["ended"]["state"], seen["ended"]["exit"]["code"]) == ("exited", 3)
    for name in ("shell", "running"):
        assert (seen[name]["state"], seen[name]["exit"]["known"], seen[name]["exit"]["code"]) == ("lost", False, None)
    assert read_all(other.host.session("ended")) == b"finished\r\n"
    assert read_all(other.host.session("shell")) == output
    again = other.host.session("shell").exec_result(done.exec_id)
    assert (again.exit_code, again.output) == (1, done.output)
    assert (stat.S_IMODE(os.stat(other.path).st_mode)) == 0o700
    assert other("doctor", "--deep", "--json").json["ok"] is True
    assert running.status().state == "live"


def test_a_backup_under_heavy_output_is_whole_up_to_where_it_was_taken(
    hold: HomeForTests, other: HomeForTests, tmp_path: Path
) -> None:
    s = hold.run("sh", "-c", "i=0; while :; do i=$((i+1)); echo line $i; done", name="flood")
    assert s.wait(text="line 2000\r\n", timeout=30).event != "timeout"
    for n in range(2):
        file = str(tmp_path / f"{n}.tgz")
        assert hold("backup", file).code == 0
        assert other("restore", file, "--force").code == 0
        chunks = list(other.host.session("flood").output())
        assert not any(c.gap for c in chunks)
        lines = b"".join(c.data for c in chunks).split(b"\r\n")
        assert len(lines) > 2000
        assert lines[:-1] == [b"line %d" % i for i in range(1, len(lines))]
        deep = other("doctor", "--deep", "--json").json
        assert [c["status"] for c in deep["checks"] if c["name"] == "logs"] == ["ok"]


def test_nothing_of_running_processes_is_in_a_backup(hold: HomeForTests, tmp_path: Path) -> None:
    s = hold.run("bash", name="shell", env={"SSH_AUTH_SOCK": "/nowhere/agent"})
    assert s.wait(input=True, timeout=20).event != "timeout"
    (hold.path / "sessions" / s.id / "exec").mkdir(exist_ok=True)  # it comes with the first command
    os.mkfifo(hold.path / "sessions" / s.id / "exec" / "fifo")
    assert hold("backup", str(tmp_path / "b.tgz")).code == 0
    with tarfile.open(tmp_path / "b.tgz") as tar:
        members = {m.name: m for m in tar}
    assert next(iter(members)) == backup.HEADER
    assert f"sessions/{s.id}/manifest.json" in members
    assert "host.json" in members
    assert all(m.isreg() or m.isdir() for m in members.values())
    living = re.compile(r"roles|\.sock|\.lock|keeper\.json|running\.json|\.tmp|ssh-agent|fifo")
    assert [name for name in members if living.search(name)] == []


def test_restart_policies_do_not_start_anything_in_a_restored_home(
    hold: HomeForTests, other: HomeForTests, tmp_path: Path
) -> None:
    s = hold.run("sleep", "1000", name="always", restart="always")
    assert s.status().state == "live"
    assert hold("backup", str(tmp_path / "b.tgz")).code == 0
    s.stop(0)  # so that the copy below cannot be mistaken for the original
    assert other("restore", str(tmp_path / "b.tgz")).code == 0
    restored = other.host.session("always")
    status = restored.status()
    assert (status.state, status.restart_at, status.generation) == ("lost", None, 1)
    restored.restart()
    status = restored.status()
    assert (status.state, status.generation) == ("live", 2)


def test_restore_refuses_a_home_in_use_and_force_moves_it_aside(hold: HomeForTests, tmp_path: Path) -> None:
    s = hold.run("sleep", "1000", name="first")
    file = str(tmp_path / "b.tgz")
    assert hold("backup", file).code == 0
    for words in ((), ("--force",)):
        refused = hold("restore", file, *words)
        assert (refused.code, "1 sessions are running" in refused.err) == (5, True)
    s.stop(0)
    refused = hold("restore", file)
    assert (refused.code, "sessions in" in refused.err) == (5, True)
    assert hold.run("true", name="second").wait(exit=True, timeout=20).event != "timeout"
    until(lambda: hold.host.session("second").status().state == "exited")
    hold.host.close()
    done = hold("restore", file, "--force", "--json")
    assert done.code == 0, done.err
    assert [x["name"] for x in hold("ls", "-a", "--json").json] == ["first"]
    aside = Path(done.json["moved_to"])
    assert aside.parent == hold.path.parent
    assert len(list((aside / "sessions").iterdir())) == 2


def test_a_host_without_sessions_is_refused_without_force(hold: HomeForTests, tmp_path: Path) -> None:
    s = hold.run("true", name="x")
    assert s.wait(exit=True, timeout=20).event != "timeout"
    until(lambda: s.status().state == "exited")
    file = str(tmp_path / "b.tgz")
    assert hold("backup", file).code == 0
    s.remove()
    refused = hold("restore", file)
    assert (refused.code, "a host is running" in refused.err) == (5, True)
    assert hold("restore", file, "--force").code == 0
    assert [x["name"] for x in hold("ls", "-a", "--json").json] == ["x"]


@pytest.mark.parametrize(
    "member",
    [
        ("../escaped", tarfile.REGTYPE, b"x"),
        ("/tmp/escaped", tarfile.REGTYPE, b"x"),
        ("sessions/../../escaped", tarfile.REGTYPE, b"x"),
        ("sessions//x", tarfile.REGTYPE, b"x"),
        ("./x", tarfile.REGTYPE, b"x"),
        ("link", tarfile.SYMTYPE, b"/etc"),
        ("hard", tarfile.LNKTYPE, b"/etc/passwd"),
        ("device", tarfile.CHRTYPE, b""),
        ("block", tarfile.BLKTYPE, b""),
        ("fifo", tarfile.FIFOTYPE, b""),
        ("host.lock", tarfile.REGTYPE, b""),
        ("sessions/ses_x/keeper.sock", tarfile.REGTYPE, b""),
        ("x" * 2000, tarfile.REGTYPE, b"x"),
    ],
    ids=lambda m: m[0][:30],
)
def test_what_leads_elsewhere_or_is_no_file_is_refused(other: HomeForTests, tmp_path: Path, member: Member) -> None:
    file = crafted(tmp_path / "bad.tgz", [("host.json", tarfile.REGTYPE, b"{}"), member])
    refused = other("restore", str(file))
    assert refused.code == 2, (refused.out, refused.err)
    assert "Traceback" not in refused.err
    assert not other.path.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.tgz"]


def test_a_link_is_not_followed_by_a_later_member(other: HomeForTests, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    members: list[Member] = [
        ("sessions", tarfile.SYMTYPE, str(tmp_path / "target").encode()),
        ("sessions/x", tarfile.REGTYPE, b"x"),
    ]
    assert other("restore", str(crafted(tmp_path / "bad.tgz", members))).code == 2
    assert list((tmp_path / "target").iterdir()) == []


def test_a_damaged_backup_changes_nothing(hold: HomeForTests, other: HomeForTests, tmp_path: Path) -> None:
    s = hold.run("sh", "-c", "head -c 300000 /dev/urandom | base64", name="x")
    assert s.wait(exit=True, timeout=20).event != "timeout"
    assert hold("backup", str(tmp_path / "good.tgz")).code == 0
    good = (tmp_path / "good.tgz").read_bytes()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 0x55
    wrong = {
        "cut": good[: len(good) // 2],
        "cut-near-the-end": good[:-20],
        "flipped": bytes(flipped),
        "empty": b"",
        "text": b"not a backup at all\n",
        "gzip": gzip.compress(b"no tar"),
        "tar": gzip.compress(good),
        "header": crafted(tmp_path / "h.tgz", [], header={"a": 1}).read_bytes(),
        "newer": crafted(tmp_path / "n.tgz", [], header={"holdfast_backup": 99}).read_bytes(),
    }
    for name, data in wrong.items():
        (tmp_path / "wrong.tgz").write_bytes(data)
        refused = other("restore", str(tmp_path / "wrong.tgz"))
        assert refused.code == 2, (name, refused.out, refused.err)
        assert "Traceback" not in refused.err
        assert not other.path.exists(), name
    assert other("restore", str(tmp_path / "absent.tgz")).code == 1
    assert list(tmp_path.glob("other.*")) == []


def test_a_backup_goes_through_a_pipe(hold: HomeForTests, other: HomeForTests) -> None:
    assert hold.run("true", name="x").wait(exit=True, timeout=20).event != "timeout"
    saved = hold("backup", "-")
    assert saved.code == 0
    assert other("restore", "-", stdin=saved.raw).code == 0
    assert [s["name"] for s in other("ls", "-a", "--json").json] == ["x"]


def test_a_backup_replaces_an_older_one_whole_and_a_device_not_at_all(hold: HomeForTests, tmp_path: Path) -> None:
    assert hold.run("true", name="x").wait(exit=True, timeout=20).event != "timeout"
    file = tmp_path / "b.tgz"
    file.write_bytes(b"old")
    assert hold("backup", str(file)).code == 0
    assert tarfile.is_tarfile(file)
    assert hold("backup", "/dev/null").code == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    inside = hold("backup", str(hold.path / "b.tgz"))
    assert (inside.code, (hold.path / "b.tgz").exists()) == (2, False)
    assert hold("backup", str(tmp_path / "no" / "folder.tgz")).code == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.tgz", "home"]


def test_there_is_nothing_to_back_up_without_a_home(other: HomeForTests, tmp_path: Path) -> None:
    assert other("backup", str(tmp_path / "b.tgz")).code == 3
    assert list(tmp_path.iterdir()) == []


SETTINGS = """
[notify]
command = ["sh", "-c", "echo $HOLDFAST_ASK_ASK >> {folder}/told"]
"""


def test_what_a_backup_has_the_host_run_is_off_until_a_person_has_confirmed_it(
    hold: HomeForTests, other: HomeForTests, tmp_path: Path
) -> None:
    (hold.path / "config.toml").write_text(SETTINGS.format(folder=tmp_path))
    assert hold("project", "init", "shop", "--root", str(tmp_path)).code == 0
    assert hold("backend", "add", "mine", "--", "touch", f"{tmp_path}/ran").code == 0
    assert hold("task", "add", "t", "--project", "shop", "--backend", "mine").code == 0
    assert hold("backup", str(tmp_path / "b.tar.gz")).code == 0
    assert "hold restore --confirm" in other("restore", str(tmp_path / "b.tar.gz")).err
    assert other("status", "--json").json["host"]["confirmed"] is False
    first = other("ask", "one?", "--json").json["id"]
    run = other("work", "run", "--project", "shop", "--once")
    assert (run.code, "hold restore --confirm" in run.err) == (4, True), run.err
    assert not (tmp_path / "ran").exists()
    other.kill_daemon()
    shown = other("restore", "--confirm")
    assert shown.code == 2
    assert "echo $HOLDFAST_ASK_ASK" in shown.out
    assert "backend mine: " in shown.out
    inside = other.run().exec(f"{' '.join(HOLD)} restore --confirm --yes", timeout=60)
    assert "outside of any session" in inside.output
    assert other("restore", "--confirm", "--yes").code == 0
    second = other("ask", "two?", "--json").json["id"]
    until(lambda: (tmp_path / "told").exists() and second in (tmp_path / "told").read_text())
    assert first not in (tmp_path / "told").read_text()
    assert other("restore", "--confirm", "--yes").code == 5
    assert other("work", "run", "--project", "shop", "--once").code in (0, 1)
    assert (tmp_path / "ran").exists()


def test_a_backup_does_not_choose_a_store_elsewhere(other: HomeForTests, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/planted.db"
    saved = crafted(tmp_path / "b.tar.gz", [("config.toml", tarfile.REGTYPE, f'[store]\nurl = "{url}"\n'.encode())])
    assert other("restore", str(saved)).code == 0
    told = other("work", "ls")
    assert (told.code, "came from a backup" in told.err) == (4, True), told.err
    assert not (tmp_path / "planted.db").exists()
    assert other("restore", "--confirm", "--yes").code == 0
    assert other("work", "ls").code == 0
    assert (tmp_path / "planted.db").exists()
