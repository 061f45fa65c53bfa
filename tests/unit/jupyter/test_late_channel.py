"""A kernel whose stdin channel is connected late: a cell that asks is not begun before its question can arrive."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.home import Home
from holdfast.system.atomic_files import read_json, write_json
from tests.support.home import until, wait_fd

RECORDER = Path(__file__).parents[3] / "src" / "holdfast" / "jupyter" / "__main__.py"
# The stdin socket is bound at once and can be reached a second later: what is asked before that, ZeroMQ drops.
LATE = """
import os, threading
from ipykernel.kernelapp import IPKernelApp

bind = IPKernelApp._bind_socket

def late(self, sock, port):
    bound = bind(self, sock, port)
    if sock is self.stdin_socket:
        path = f"{self.ip}-{port}"
        os.rename(path, path + "-late")
        threading.Timer(1.0, os.rename, (path + "-late", path)).start()
    return bound

IPKernelApp._bind_socket = late
IPKernelApp.launch_instance()
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """Where sockets of a kernel fit: a socket's path has a limit of 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        yield Path(folder)


def test_a_question_is_asked_only_when_it_can_arrive(short: Path) -> None:
    home = Home(str(short / "home"))
    folder = home.session("ses_0000000000000000")
    os.makedirs(folder.path)
    argv = [sys.executable, "-c", LATE, "-f", "{connection_file}"]
    about = {"spec": "late", "language": "python", "display_name": "Late", "argv": argv, "interrupt_mode": "signal"}
    write_json(folder.manifest, {"kernel": about, "generation": 1, "env": dict(os.environ)})
    ours, theirs = pty.openpty()
    env = {**os.environ, "HOLDFAST_HOME": home.path, "HOLDFAST_SESSION": "ses_0000000000000000"}

    def state() -> Any:
        return (read_json(folder.kernel_state) or {}).get("state")

    with subprocess.Popen(
        [sys.executable, str(RECORDER)], stdin=theirs, stdout=theirs, stderr=theirs, env=env
    ) as recorder:
        try:
            until(lambda: state() == "idle", 60)
            os.write(ours, b"answer = input('Your name? ')\n")
            until(lambda: state() == "input", 60)
            os.write(ours, b"Ada\n")
            os.write(ours, f"open({str(short / 'told')!r}, 'w').write(answer)\n".encode())
            until(lambda: (short / "told").exists() and (short / "told").read_text() == "Ada", 60)
        finally:
            ended = os.pidfd_open(json.loads(Path(folder.kernel_state).read_text())["pid"])
            recorder.send_signal(signal.SIGKILL)
            wait_fd(ended, timeout=60)  # it dies with its recorder
            os.close(ours)
            os.close(theirs)
