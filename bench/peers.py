"""The peers: tmux and dtach, each on a socket of its own, with defaults and no configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .ours import clean_env, gone, until


class Tmux:
    """A tmux server of the benchmark's own. A context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="hold-bench-tmux-")
        self.env = clean_env(TMUX_TMPDIR=self._folder)
        self._base = ("tmux", "-L", "bench", "-f", "/dev/null")
        self._count = 0
        self.hold("cat")  # the server starts with its first session
        self.pid = int(self._ask("display-message", "-p", "#{pid}"))

    def __enter__(self) -> Tmux:
        return self

    def __exit__(self, *exc: object) -> None:
        gone(self.pid, lambda: self._ask("kill-server"))
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ask(self, *words: str) -> str:
        done = subprocess.run([*self._base, *words], env=self.env, check=True, stdout=subprocess.PIPE)
        return done.stdout.decode().strip()

    def hold_words(self, name: str, *command: str, size: tuple[int, int] = (80, 24)) -> Sequence[str]:
        return (*self._base, "new-session", "-d", "-s", name, "-x", str(size[0]), "-y", str(size[1]), *command)

    def hold(self, *command: str) -> str:
        """A detached session; its name."""
        self._count += 1
        name = f"s{self._count}"
        subprocess.run(self.hold_words(name, *command), env=self.env, cwd="/", check=True)
        return name

    def attach_words(self, name: str) -> Sequence[str]:
        return (*self._base, "attach-session", "-t", name)

    def end(self, name: str) -> None:
        self._ask("kill-session", "-t", name)


class Dtach:
    """dtach sessions: one master process and one socket each. A context manager."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hold-bench-dtach-"))
        self.env = clean_env()
        self._masters: list[int] = []
        self._count = 0

    def __enter__(self) -> Dtach:
        return self

    def __exit__(self, *exc: object) -> None:
        for pid in self._masters:
            gone(pid, lambda pid=pid: _hang_up(pid))  # type: ignore[misc]
        shutil.rmtree(self._folder, ignore_errors=True)

    def hold(self, *command: str) -> str:
        """A detached session; its socket."""
        self._count += 1
        socket = str(self._folder / f"s{self._count}")
        subprocess.run(["dtach", "-n", socket, *command], env=self.env, cwd="/", check=True)
        self._masters.append(until(lambda: _master_of(socket)))
        return socket

    def attach_words(self, socket: str) -> Sequence[str]:
        return ("dtach", "-a", socket, "-E", "-z", "-r", "none")


def _master_of(socket: str) -> int | None:
    """The pid of the dtach that was started with this socket: nothing else can tell it."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[:3] == [b"dtach", b"-n", os.fsencode(socket)]:
                return int(name)
    return None


def _hang_up(master: int) -> None:
    """End the master's program; the master ends with it."""
    for name in Path(f"/proc/{master}/task/{master}/children").read_text().split():
        os.kill(int(name), 9)
    os.kill(master, 15)
