"""A keeper of a test's own, without any daemon: a zygote, a manifest, and lines to it for as many operators as wanted."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import holdfast
from holdfast.model.home import Home
from holdfast.wire import keeper_frames
from tests.support.home import wait_fd
from tests.support.keeperline import KeeperLine

_ENTRY = Path(holdfast.__file__).parent / "keeper" / "__main__.py"
HUMAN: dict[str, Any] = {"operator": "op_ada", "kind": "human", "name": "ada"}
OTHER: dict[str, Any] = {"operator": "op_bob", "kind": "human", "name": "bob"}
AGENT: dict[str, Any] = {"operator": "op_bot", "kind": "agent", "name": "bot"}


class OwnKeeper:
    """One session and its keeper. `facts` go into the manifest (`lease_s`, `grace_s`, `spooled`)."""

    def __init__(self, path: Path, *command: str, pipes: bool = False, generation: int = 1, **facts: Any) -> None:
        self.home = Home(str(path))
        self.id = "ses_own"
        self.folder = self.home.session(self.id)
        os.makedirs(self.folder.path, exist_ok=True)
        os.makedirs(self.home.roles, exist_ok=True)
        manifest = {
            "id": self.id,
            "name": "own",
            "generation": generation,
            "token": "secret",
            "size": [80, 24],
            "kind": "pipes" if pipes else "terminal",
            "command": list(command),
            "cwd": str(path),
            "env": {"PATH": os.environ["PATH"], "TERM": "dumb"},
            **facts,
        }
        Path(self.folder.manifest).write_text(json.dumps(manifest), encoding="utf-8")
        self._zygote, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_ENTRY), self.home.roles], stdin=theirs.fileno(), cwd="/"
        )
        theirs.close()
        self._zygote.settimeout(60)
        assert self._zygote.recv(1) == b"r"
        first, theirs = socket.socketpair()
        socket.send_fds(self._zygote, [(b"p" if pipes else b"t") + os.fsencode(self.folder.path)], [theirs.fileno()])
        theirs.close()
        self.host = KeeperLine(self.home, self.id, sock=first, role="host", via="host", **HUMAN)
        self.pid = int(self.host.welcome["keeper"])
        self.program = int(self.host.welcome["pid"])
        self._pidfd = os.pidfd_open(self.pid)

    def line(self, who: dict[str, str] = HUMAN, **hello: Any) -> KeeperLine:
        return KeeperLine(self.home, self.id, **{**who, **hello})

    def entries(self, after: int = 0, *, now: bool = True) -> list[dict[str, Any]]:
        """All that was recorded, the range that is open included."""
        answer = self.host.act("events", after=after, max=100_000, now=now)["ok"]
        found: list[dict[str, Any]] = list(answer["events"])
        while found and found[-1]["n"] < answer["last"]:
            found += self.host.act("events", after=found[-1]["n"], max=100_000)["ok"]["events"]
        return found

    def complaints(self) -> str:
        """What went wrong in the keeper that it did not expect."""
        log = Path(self.home.log)
        return log.read_text() if log.exists() else ""

    def kill(self) -> None:
        """The keeper dies; so does its program, which would outlive it."""
        os.kill(self.pid, signal.SIGKILL)
        wait_fd(os.dup(self._pidfd), 60)
        try:
            os.kill(self.program, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def close(self) -> None:
        self.host.close()
        try:
            os.kill(self.pid, 0)
            with KeeperLine(self.home, self.id, role="host", **HUMAN) as line:
                line.sock.sendall(keeper_frames.message(keeper_frames.ACT, {"id": 1, "op": "stop", "grace_s": 0}))
                wait_fd(os.dup(self._pidfd), 60)
        except (OSError, AssertionError):
            self.kill_quietly()
        os.close(self._pidfd)
        self._zygote.close()
        self._process.wait(60)

    def kill_quietly(self) -> None:
        for pid in (self.pid, self.program):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def __enter__(self) -> OwnKeeper:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
