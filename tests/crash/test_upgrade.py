"""A daemon of the next version adopts this version's keepers, and this one's protocol stays as it is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import holdfast
from holdfast.wire import keeper_frames
from tests.support.home import HomeForTests, read_all, wait_fd


def test_a_daemon_of_the_next_version_adopts_this_versions_keepers(hold: HomeForTests, tmp_path: Path) -> None:
    s = hold.run("bash", "--norc", name="kept")
    assert s.exec("X=before; echo one", timeout=30).output == "one\n"
    pid, end = s.status().pid, s.status().output.end
    after = tmp_path / "next" / "holdfast"
    shutil.copytree(Path(holdfast.__file__).parent, after, ignore=shutil.ignore_patterns("__pycache__"))
    (after / "version.py").write_text('"""The next version."""\n\nVERSION = "99.0.0"\n')
    hold.kill_daemon()
    ready, theirs = os.pipe()
    subprocess.run(
        [sys.executable, "-I", str(after / "host" / "__main__.py"), str(hold.path), str(theirs)],
        pass_fds=[theirs],
        env=hold.env,
        check=True,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    assert os.read(ready, 16) == b"ready"
    os.close(ready)
    about = hold.host.call("ping")["host"]
    assert about["version"] == "99.0.0"
    assert s.status().pid == pid
    assert s.exec("echo $X", timeout=30).output == "before\n"
    assert read_all(s)[:end]
    upgraded = hold.run("cat", name="new")
    assert upgraded.status().state == "live"
    fd = os.pidfd_open(about["pid"])
    hold.host.call("down", all=True, grace_s=1)
    wait_fd(fd)


def test_the_frozen_frames_are_what_they_were() -> None:
    """Bytes written down once. If this fails, older keepers are cut off: add a frame, do not change one."""
    assert keeper_frames.read(1, 2).hex() == "0000001102" + "0000000000000001" + "0000000000000002"
    assert keeper_frames.input_frame(1, 2, b"a").hex() == "0000001203" + "0000000000000001" + "0000000000000002" + "61"
    assert keeper_frames.resize(80, 24).hex() == "0000000504" + "0050" + "0018"
    assert keeper_frames.u64_frame(keeper_frames.WATCH, 7).hex() == "0000000906" + "0000000000000007"
    assert (keeper_frames.output_head(5, 1, 3) + b"abc").hex() == "0000000d42" + "0000000000000005" + "01" + "616263"
    assert (
        keeper_frames.pair_frame(keeper_frames.GAP, 1, 2).hex()
        == "0000001143" + "0000000000000001" + "0000000000000002"
    )
    assert keeper_frames.ack(1, 2, True).hex() == "0000001245" + "0000000000000001" + "0000000000000002" + "01"
    kinds = {
        n: getattr(keeper_frames, n)
        for n in (
            "HELLO",
            "READ",
            "INPUT",
            "RESIZE",
            "ACT",
            "WATCH",
            "WELCOME",
            "OUTPUT",
            "GAP",
            "END",
            "ACK",
            "RESULT",
            "GREW",
            "EVENT",
        )
    }
    assert kinds == {
        "HELLO": 1,
        "READ": 2,
        "INPUT": 3,
        "RESIZE": 4,
        "ACT": 5,
        "WATCH": 6,
        "WELCOME": 65,
        "OUTPUT": 66,
        "GAP": 67,
        "END": 68,
        "ACK": 69,
        "RESULT": 70,
        "GREW": 71,
        "EVENT": 72,
    }
