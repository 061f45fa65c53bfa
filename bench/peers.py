"""The peers: tmux and dtach, each on a socket of its own, with defaults and no configuration."""

from __future__ import annotations

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

    def screen(self, name: str) -> str:
        return self._ask("capture-pane", "-p", "-t", name)

    def end(self, name: str) -> None:
        self._ask("kill-session", "-t", name)


class Dtach:
    """dtach sessions: one master process and one socket each. A context manager."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hold-bench-dtach-"))
        self.env = clean_env()
        self._masters: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Dtach:
        return self

    def __exit__(self, *exc: object) -> None:
        for master in self._masters:
            master.terminate()
            master.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def hold(self, *command: str) -> str:
        """A session nobody is attached to; its socket."""
        socket = self._folder / f"s{len(self._masters)}"
        # -N stays our child, so that it can be ended by its pid.
        words = ["dtach", "-N", str(socket), "-r", "none", *command]
        quiet = subprocess.DEVNULL
        self._masters.append(
            subprocess.Popen(words, env=self.env, cwd="/", stdin=quiet, stdout=quiet, start_new_session=True)
        )
        until(socket.exists)
        return str(socket)

    @property
    def pids(self) -> list[int]:
        return [master.pid for master in self._masters]

    def attach_words(self, socket: str) -> Sequence[str]:
        return ("dtach", "-a", socket, "-E", "-z", "-r", "none")
