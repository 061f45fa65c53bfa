"""The demo's environment: a temporary home, the `hold` command, terminals to kill, and the clean-up."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from .terminal import DemoTerminal

Step = tuple[str, Callable[["DemoHome"], str]]  # title; does the step, checks its promises, returns what was seen
_COMMAND_S = 60.0  # one command on a machine that is very busy; alone it takes a tenth of a second
_END_S = 15.0  # for everything to be gone at the end


class DemoFailed(Exception):
    """A check of the demo that failed: what was expected, and what was observed."""

    def __init__(self, promise: str, **details: object) -> None:
        self.promise, self.details = promise, {k: repr(v)[:2000] for k, v in details.items()}
        lines = [f"promised: {promise}", *(f"{name}: {value}" for name, value in self.details.items())]
        super().__init__("\n".join(lines))


class DemoHome:
    """A temporary home. `seen` passes facts from one step to the next; `last` is the latest command, for reports."""

    def __init__(self) -> None:
        self.home = tempfile.mkdtemp(prefix="holdfast-demo-")
        outside = ("HOLDFAST_HOME", "HOLDFAST_SESSION", "HOLDFAST_OPERATOR", "PROMPT_COMMAND")
        self.env = {k: v for k, v in os.environ.items() if k not in outside}
        self.env["HOLDFAST_HOME"] = self.home
        self.seen: dict[str, Any] = {}
        self.last = ""
        self._terminals: list[DemoTerminal] = []
        self._work = ""

    def __enter__(self) -> DemoHome:
        return self

    def path(self, name: str) -> str:
        return os.path.join(self.home, name)

    def work(self) -> str:
        """Create a project folder outside the home and run later commands there."""
        self._work = self._work or tempfile.mkdtemp(prefix="holdfast-demo-work-")
        return self._work

    # -- acting as a user does

    def hold(self, *words: str, stdin: bytes = b"", code: int | None = 0) -> bytes:
        """What `hold WORDS` prints; raises DemoFailed unless it exits with `code`."""
        self.last = "hold " + " ".join(words)
        done = subprocess.run(
            [*HOLD, *words],
            input=stdin,
            capture_output=True,
            timeout=_COMMAND_S,
            env=self.env,
            check=False,
            cwd=self._work or None,
        )
        self.check(
            code is None or done.returncode == code,
            f"`{self.last}` ends with exit code {code}",
            exit_code=done.returncode,
            stdout=done.stdout[-500:],
            stderr=done.stderr[-500:],
        )
        return done.stdout

    def ask(self, *words: str, stdin: bytes = b"", code: int | None = 0) -> Any:
        """The JSON that `hold WORDS --json` prints; `--json` comes first, a command may follow."""
        return json.loads(self.hold(words[0], "--json", *words[1:], stdin=stdin, code=code))

    def terminal(self, *words: str) -> DemoTerminal:
        """A new terminal, 80x24, that runs `hold WORDS`."""
        self.last = "hold " + " ".join(words) + " (in a terminal)"
        made = DemoTerminal([*HOLD, *words], self.env)
        self._terminals.append(made)
        return made

    # -- checking

    @staticmethod
    def check(kept: object, promise: str, **details: object) -> None:
        if not kept:
            raise DemoFailed(promise, **details)

    def until(self, look: Callable[[], Any], promise: str, seconds: float = 30.0) -> Any:
        """Poll `look` until it returns a true value; for facts that no command waits for."""
        deadline = time.monotonic() + seconds
        while not (value := look()):
            self.check(time.monotonic() < deadline, promise, waited_s=seconds)
            time.sleep(0.02)
        return value

    # -- processes

    def kill(self, pid: int) -> None:
        """Send SIGKILL and wait until the process is gone."""
        fd = os.pidfd_open(pid)
        try:
            os.kill(pid, signal.SIGKILL)
            self.check(select.select([fd], [], [], _END_S)[0], "a killed process is gone", pid=pid)
        finally:
            os.close(fd)

    def marked(self) -> list[int]:
        """All processes with this home in their environment."""
        mark = f"HOLDFAST_HOME={self.home}".encode()
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as f:
                    if mark in f.read().split(b"\0"):
                        found.append(int(name))
            except OSError:
                continue
        return found

    # -- the end

    def __exit__(self, *exc: object) -> None:
        """Run every part even if an earlier one failed; a second signal does not interrupt it."""
        before = {n: signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            for part in (self._close_terminals, self._down, self._sweep):
                try:
                    part()
                except (OSError, subprocess.SubprocessError):
                    continue  # the next part is the more forceful one
            for folder in filter(None, (self.home, self._work)):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _close_terminals(self) -> None:
        for terminal in self._terminals:
            terminal.kill()

    def _down(self) -> None:
        subprocess.run(
            [*HOLD, "down", "--all", "--yes"],
            env=self.env,
            timeout=_COMMAND_S,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _sweep(self) -> None:
        """End the processes that are left: the demo started them."""
        deadline = time.monotonic() + _END_S
        while (left := self.marked()) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.05)


def start_time(pid: int) -> str | None:
    """The start time, which with the pid identifies one process; None if there is none, or only a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


HOLD = [sys.executable, "-P", "-m", "holdfast.cli.main"]
