"""The service manager of this machine or user: is one there, and what does it say of our unit."""

from __future__ import annotations

import os
import shutil
import subprocess

from . import systemd_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_ANSWER_S = 60.0  # a start waits for the daemon's exec, on a machine that may just be booting


def runtime_dir() -> str:
    """Where this user's manager listens; a login through su or cron does not set the variable."""
    return os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"


def user_manager() -> bool:
    """Whether this user has a service manager that runs."""
    return os.path.exists(os.path.join(runtime_dir(), "systemd", "private"))


def system_manager() -> bool:
    """Whether systemd runs this machine."""
    return os.path.exists("/run/systemd/private") and os.path.isdir("/run/systemd/system")


def user_name() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def lingering(user: str) -> bool:
    """Whether the user's manager lives on when the user has logged out."""
    return os.path.exists(os.path.join("/var/lib/systemd/linger", user))


class Manager:
    """`systemctl` for one scope."""

    def __init__(self, scope: str) -> None:
        self.scope = scope

    @property
    def reachable(self) -> bool:
        if shutil.which("systemctl") is None:
            return False
        return user_manager() if self.scope == systemd_unit.USER else system_manager()

    def command(self, *words: str) -> list[str]:
        return ["systemctl", *(["--user"] if self.scope == systemd_unit.USER else []), *words]

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code, and what it printed or complained about."""
        environ = {**os.environ, "LC_ALL": "C"}
        if self.scope == systemd_unit.USER:
            environ["XDG_RUNTIME_DIR"] = runtime_dir()
        try:
            done = subprocess.run(
                self.command(*words),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_ANSWER_S,
                check=False,
                env=environ,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            return 1, str(e)
        return done.returncode, (done.stdout or done.stderr).decode("utf-8", "replace").strip()

    def show(self, *names: str) -> dict[str, str]:
        """Properties of the unit; empty where the manager does not answer."""
        code, printed = self.run("show", systemd_unit.NAME, *(f"--property={n}" for n in names))
        return parse_properties(printed) if code == 0 else {}


def parse_properties(printed: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)


def in_our_unit(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as f:
            return systemd_unit.service_of(f.read())
    except OSError:
        return False


def words(command: Sequence[str]) -> str:
    return " ".join(command)
