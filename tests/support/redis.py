"""A Redis of the test's own: in a folder of its own, on a unix socket, keeping nothing on disk."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.needs import program

_DEADLINE_S = 30.0


class Redis:
    def __init__(self) -> None:
        server = program("redis-server")
        self.folder = Path(tempfile.mkdtemp(prefix="hf-redis-"))  # short: a socket's path is bounded
        self.socket = self.folder / "s"
        self.url = f"unix://{self.socket}"
        self._command = [
            server,
            "--port",
            "0",
            "--unixsocket",
            str(self.socket),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(self.folder),
            "--daemonize",
            "no",
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + _DEADLINE_S
        while not self.say("PING").startswith(b"+PONG"):
            assert self._process.poll() is None, "redis-server ended"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)

    def say(self, command: str) -> bytes:
        """One command, as a person would type it; b"" where nobody answers."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(_DEADLINE_S)
            try:
                line.connect(str(self.socket))
                line.sendall(command.encode() + b"\r\n")
                return line.recv(65536)
            except OSError:
                return b""

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_DEADLINE_S)
            self._process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
