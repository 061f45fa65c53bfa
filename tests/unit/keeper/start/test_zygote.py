"""The zygote alone: what it does when its host is gone before it is ready."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from holdfast import keeper

ENTRY = Path(str(keeper.__file__)).with_name("__main__.py")


def test_a_zygote_whose_host_died_while_it_came_up_ends_in_silence_and_leaves_nothing(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.close()
    roles = tmp_path / "roles"
    roles.mkdir()
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(ENTRY), str(roles)],
        stdin=theirs.fileno(),
        capture_output=True,
        timeout=60,
        check=False,
    )
    theirs.close()
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(roles.iterdir()) == []
