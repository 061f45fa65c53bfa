"""A Holdfast of the benchmark's own: a home in a temporary folder, and an end that leaves nothing behind."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.client._sync.host import Host, Session
from holdfast.model.errors import HoldfastError
from holdfast.system import kernel

HOLD = str(Path(sys.executable).parent / "hold")  # the installed command, as a user's shell finds it
SHELL = ("bash", "--norc", "--noprofile")  # the same everywhere: a user's start-up files are not what is measured
_ENDING_S = 30.0  # hundreds of sessions end within seconds


def clean_env(**more: str) -> dict[str, str]:
    """This process's environment without what would change a session, a client or a peer."""
    ours = ("HOLDFAST_", "TMUX", "BASH_ENV", "PROMPT_COMMAND")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {**env, "TERM": "xterm-256color", "PS1": "$ ", **more}


class Ours:
    """Home, daemon and sessions. A context manager."""

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="hold-bench-")
        self.env = clean_env(HOLDFAST_HOME=self.path)
        self.host = Host(self.path)

    def __enter__(self) -> Ours:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def run(self, *command: str, size: tuple[int, int] = (80, 24)) -> Session:
        """A detached session; its environment is the one that peers' programs get."""
        return self.host.run(list(command), size=size, cwd="/", env=self.env)

    def attach_words(self, session: Session) -> Sequence[str]:
        return (HOLD, "attach", session.id)

    def daemon_pid(self) -> int:
        return int(self.host.call("ping")["host"]["pid"])

    def zygote_pid(self) -> int:
        return int(self.host.call("ping")["host"]["zygote_pid"])

    def spares(self) -> list[int]:
        """The keeper that waits for the next start, and the child that will be its program."""
        names = {pid: Path(f"/proc/{pid}/comm") for pid in map(int, filter(str.isdigit, os.listdir("/proc")))}
        roles = kernel.registered(str(Path(self.path, "roles")))
        spares = [pid for pid, _ in roles if pid in names and names[pid].read_text() == "hold-spare\n"]
        children = [int(n) for pid in spares for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return spares + children

    def keeper_pid(self, session: Session) -> int:
        folder = Path(self.path, "sessions", session.id)
        return int(json.loads((folder / "keeper.lock").read_text())["pid"])

    def kill_daemon(self) -> None:
        """SIGKILL, and wait until it is gone."""
        pid = self.daemon_pid()
        self.host.close()
        gone(pid, lambda: os.kill(pid, signal.SIGKILL))

    def close(self) -> None:
        roles = kernel.registered(str(Path(self.path, "roles")))
        try:
            for session in self.host.call("ls"):
                self.host.call("stop", session=session["id"], grace_s=0)
            pid = self.daemon_pid()
            gone(pid, lambda: self.host.call("down"))
        except (HoldfastError, OSError, TimeoutError) as e:
            print(f"bench: ending by hand, {e}", file=sys.stderr)
        self.host.close()
        for pid, started in roles:  # by pid and start time: never anybody else's process
            if kernel.start_time(pid) == started:
                gone(pid, lambda pid=pid: os.kill(pid, signal.SIGKILL))  # type: ignore[misc]
        shutil.rmtree(self.path, ignore_errors=True)


def gone(pid: int, end: Callable[[], Any]) -> None:
    """Do what ends a process, and return when the kernel says that it has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        end()
        if not select.select([fd], [], [], _ENDING_S)[0]:
            raise TimeoutError(f"pid {pid} did not end")
    finally:
        os.close(fd)


def until(condition: Callable[[], Any], timeout: float = 30, pause: float = 0.01) -> Any:
    """The first true value of `condition`, for facts that have no event to wait on."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come true within {timeout} s")
        time.sleep(pause)
    return value
