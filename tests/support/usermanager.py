"""A real systemd user manager for one test: in namespaces and control groups of its own, gone when it ends."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

_SYSTEMD = "/lib/systemd/systemd"
_GROUPS = Path("/sys/fs/cgroup")
_READY_S = 20.0  # it listens within half a second; a machine busy with other tests takes longer
# The targets that every unit depends on, and nothing of what this machine would start besides.
_TARGETS = ("basic.target", "default.target", "shutdown.target", "sockets.target", "timers.target", "paths.target")
# The manager insists on a machine that systemd has booted, which it takes from this folder's presence, and logs to the
# console, which has to be a terminal: the test's own.
_SETUP = """
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR"
chmod 700 "$XDG_RUNTIME_DIR"
for group in $GROUPS_OF_TEST; do echo 0 >"$group/cgroup.procs"; done
mount --bind "$CONSOLE" /dev/console
SYSTEMD_LOG_TARGET=console SYSTEMD_LOG_LEVEL=warning "$SYSTEMD" --user --unit=default.target >/dev/null 2>&1 &
until [ -S "$XDG_RUNTIME_DIR/systemd/private" ]; do kill -0 $! && sleep 0.02; done
echo ready
cat >/dev/null
"""


class UserManager:
    """`run("systemctl", "--user", …)` runs a command where the manager is; `log` is what the manager said."""

    def __init__(self, folder: Path) -> None:
        self._refuse_where_impossible()
        self.config = folder / "config"
        units = folder / "units"
        for path in (self.config / "systemd" / "user", units):
            path.mkdir(parents=True)
        for name in _TARGETS:
            (units / name).write_text(f"[Unit]\nDescription={name}\nDefaultDependencies=no\n")
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": "/run/user/0",
            "LC_ALL": "C.UTF-8",
            "XDG_CONFIG_HOME": str(self.config),
            "PYTHONPATH": os.environ.get("PYTHONPATH", "src"),
        }
        self._groups = self._make_groups()
        self._console, self._console_end = os.openpty()
        os.set_blocking(self._console, False)
        self._logged = b""
        setup = {
            "GROUPS_OF_TEST": " ".join(map(str, self._groups)),
            "SYSTEMD": _SYSTEMD,
            "CONSOLE": os.ttyname(self._console_end),
            "SYSTEMD_UNIT_PATH": f"{self.config}/systemd/user:{units}",
        }
        self._process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", _SETUP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.env | setup,
        )
        self._await_ready()

    @staticmethod
    def _refuse_where_impossible() -> None:
        if os.getuid() != 0:
            pytest.skip("a service manager of the test's own needs root, for namespaces and control groups")
        missing = [p for p in ("unshare", "nsenter", "systemctl", _SYSTEMD) if shutil.which(p) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")

    @staticmethod
    def _make_groups() -> list[Path]:
        name = f"holdfast-test-{os.getpid()}"
        roots = [r for r in (_GROUPS / "systemd", _GROUPS / "unified") if r.is_dir()] or [_GROUPS]
        made = []
        for root in roots:
            group = root / name
            try:
                group.mkdir()
            except OSError as e:
                pytest.skip(f"no control group can be made below {root}: {e}")
            made.append(group)
        return made

    def _await_ready(self) -> None:
        assert self._process.stdout is not None
        ready = select.select([self._process.stdout], [], [], _READY_S)[0]
        said = os.read(self._process.stdout.fileno(), 4096) if ready else b"nothing"
        if said != b"ready\n":
            log = self.log()
            self.close()
            pytest.skip(f"no systemd --user runs here: {said!r} {log[-1000:]!r}")

    def run(self, *command: str, code: int | None = 0, env: dict[str, str] | None = None) -> str:
        """Standard output of a command beside the manager; `code` is the exit code it must have."""
        init = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()[0]
        done = subprocess.run(
            ["nsenter", "--target", init, "--mount", "--pid", "--", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            env={**self.env, **(env or {})},
        )
        self.log()  # a full terminal would block the manager
        assert code is None or done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    def log(self) -> str:
        """Everything the manager warned of so far."""
        try:
            while data := os.read(self._console, 65536):
                self._logged += data
        except BlockingIOError:
            pass
        return self._logged.decode("utf-8", "replace")

    def close(self) -> None:
        """End every process in there (the kernel does it with their first one), then the groups."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()
        os.close(self._console)
        os.close(self._console_end)
        deadline = time.monotonic() + 10
        for group in self._groups:
            while group.exists():
                for folder, _, _ in os.walk(group, topdown=False):
                    try:
                        os.rmdir(folder)
                    except OSError:
                        assert time.monotonic() < deadline, f"{folder} is still in use"
                        time.sleep(0.01)
