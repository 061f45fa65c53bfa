"""What the zygote does to its memory before keepers are forked from it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import holdfast

_SOURCE = str(Path(holdfast.__file__).parent.parent)


def test_zygotes_of_one_home_rehearse_beside_each_other(tmp_path: Path) -> None:
    """A host that was killed and the next one have one each, for a moment."""
    for left in ("rehearsal", "rehearsal.0"):  # by those that were killed, of before too
        (tmp_path / "roles" / left / "out").mkdir(parents=True)
        (tmp_path / "roles" / left / "keeper.lock").touch()
    lines, zygotes = [], []
    for _ in range(4):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-I", "-S", f"{_SOURCE}/holdfast/keeper/__main__.py", str(tmp_path / "roles")]
        zygotes.append(subprocess.Popen(words, stdin=theirs.fileno(), stderr=subprocess.PIPE, cwd="/"))
        lines.append(ours)
        theirs.close()
    for line, zygote in zip(lines, zygotes, strict=True):
        line.settimeout(60)
        ready = line.recv(1)
        line.close()
        assert (ready, zygote.communicate(timeout=60)[1]) == (b"r", b"")
    assert [name for name in os.listdir(tmp_path / "roles") if name.startswith("rehearsal")] == []
