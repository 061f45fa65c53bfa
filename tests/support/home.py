"""A Holdfast of a test's own: its home, its command line, its SDK, and an end that leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.client._sync.host import Host, Session
from holdfast.model.errors import HoldfastError
from tests.support.needs import listed, package_of, program

HOLD = [sys.executable, "-m", "holdfast.cli.main"]


class Result:
    """How one `hold` command ended."""

    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code, self.raw = done.returncode, done.stdout
        self.out, self.err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class HomeForTests:
    """`hold("ls")` runs the command; `host` is the SDK; `home` the folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        self.env.update(HOLDFAST_HOME=str(path), SHELL="/bin/bash", NO_COLOR="1")
        self.env.pop("PROMPT_COMMAND", None)
        self.host = Host(str(path))

    def __call__(self, *words: str | bytes, stdin: bytes = b"", timeout: float = 60, **env: str) -> Result:
        done = subprocess.run(
            [*HOLD, *words],
            input=stdin,
            capture_output=True,
            timeout=timeout,
            env={**self.env, **env},
            check=False,
        )
        return Result(done)

    def run(self, *command: str, **options: Any) -> Session:
        """A detached session, with the test's environment."""
        if options.get("isolate"):
            program("bwrap")
        if command and package_of(command[0]) in listed():
            program(command[0])
        options.setdefault("env", {})
        options["env"] = {"HOLDFAST_HOME": str(self.path), "SHELL": "/bin/bash", **options["env"]}
        return self.host.run(list(command) or None, **options)

    def daemon_pid(self) -> int:
        return int(self.host.call("ping")["host"]["pid"])

    def kill_daemon(self) -> int:
        """SIGKILL, and wait until the kernel agrees; the pid that died."""
        pid = self.daemon_pid()
        self.host.close()
        fd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        wait_fd(fd)
        return pid

    def keeper_pid(self, session: Session) -> int:
        record = json.loads((self.path / "sessions" / session.id / "keeper.lock").read_text())
        return int(record["pid"])

    def clear(self) -> None:
        """End and remove every session, so that the next test finds the home as this one did."""
        for s in self.host.call("ls", all=True):
            try:
                self.host.call("stop", session=s["id"], grace_s=0)
                self.host.call("rm", session=s["id"])
            except HoldfastError as e:
                if e.code != "not_found":  # it went by itself
                    raise

    def close(self) -> None:
        """End every session and the daemon; complain about none that was ended before."""
        try:
            for s in self.host.call("ls", all=True):
                try:
                    self.host.call("stop", session=s["id"], grace_s=0)
                except HoldfastError:
                    continue
            pid = self.daemon_pid()
            fd = os.pidfd_open(pid)
            self.host.call("down")
            wait_fd(fd)
        except (HoldfastError, ProcessLookupError):
            pass
        self.host.close()
        for left in self._left():
            os.kill(left, signal.SIGKILL)

    def _left(self) -> list[int]:
        """Processes that still carry this home in their environment."""
        mark = f"HOLDFAST_HOME={self.path}".encode()
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    environ = Path(f"/proc/{name}/environ").read_bytes()
                except OSError:
                    continue
                if mark in environ.split(b"\0"):
                    found.append(int(name))
        return found


def wait_fd(pidfd: int, timeout: float = 60) -> None:
    """Until the process behind a pidfd has ended."""
    import select

    try:
        assert select.select([pidfd], [], [], timeout)[0], "the process did not end"
    finally:
        os.close(pidfd)


def until(condition: Callable[[], Any], timeout: float = 60, pause: float = 0.01) -> Any:
    """The first true value of `condition`; for facts that have no event to wait on."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"it did not come true within {timeout} s"
        time.sleep(pause)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def read_all(session: Session, start: int = 0) -> bytes:
    return b"".join(c.data for c in session.output(start))


async def until_async(condition: Callable[[], Any], timeout: float = 60) -> Any:
    """`until` for a test that shares its loop with what it waits for."""
    import asyncio

    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"it did not come true within {timeout} s"
        await asyncio.sleep(0.005)
    return value
