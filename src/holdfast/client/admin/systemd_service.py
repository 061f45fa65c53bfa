"""Installing, starting, looking at and removing the host's systemd unit."""

from __future__ import annotations

import os
import select
import sys

from ...model.errors import HoldfastError
from ...system import programs
from ...system.atomic_files import write_bytes
from . import systemd_manager, systemd_unit
from .stop_host import daemon_pid, stop_daemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._sync.host import Host

_SERVES_S = 20.0  # exec to first answer: an interpreter's start, and every session adopted
_ATTEMPTS = 3  # a client that needs a host just now may start one in between


class Service:
    """The unit of one scope, for one host's home."""

    def __init__(self, scope: str, host: Host) -> None:
        self.scope, self.host = scope, host
        self.manager = systemd_manager.Manager(scope)
        self.path = systemd_unit.path_of(scope, dict(os.environ), os.path.expanduser("~"))

    def text(self) -> str:
        given = os.environ.get("HOLDFAST_HOME")
        return systemd_unit.text(self.scope, sys.executable, programs.HOST, self.host.home.path, given)

    def installed(self) -> str | None:
        try:
            with open(self.path, encoding="utf-8", errors="surrogateescape") as f:
                return f.read()
        except FileNotFoundError:
            return None

    @property
    def lingers(self) -> bool:
        return systemd_manager.lingering(systemd_manager.user_name())

    def write(self) -> None:
        """Put the unit in its place; somebody else's unit, and that of another home, are left alone."""
        there = self.installed()
        if there is not None and not systemd_unit.is_ours(there):
            raise HoldfastError("conflict", f"{self.path} was not written by hold", "move it away first")
        if there is not None and systemd_unit.home_in(there) != self.host.home.path:
            raise HoldfastError(
                "conflict",
                f"{systemd_unit.NAME} serves another home, {systemd_unit.home_in(there)}",
                "hold service uninstall first",
            )
        try:
            os.makedirs(self.host.home.path, mode=0o700, exist_ok=True)
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            write_bytes(self.path, self.text().encode("utf-8", "surrogateescape"))
            os.chmod(self.path, 0o644)  # as units are: there is nothing secret in it
        except OSError as e:
            raise HoldfastError("failed", f"cannot write {self.path}: {e.strerror}", "who owns its folder?") from None

    def start(self, clock: Callable[[], float]) -> int:
        """Enable the unit and make its daemon the one that serves; its pid."""
        self._must("daemon-reload")
        self._must("enable", systemd_unit.NAME)
        for _ in range(_ATTEMPTS):
            self._stop_stranger()
            self._must("restart", systemd_unit.NAME)
            pid = self._serving(clock() + _SERVES_S, clock)
            if pid and pid == self._main_pid():
                return pid
        raise HoldfastError(
            "failed",
            f"{systemd_unit.NAME} was started and does not serve {self.host.home.path}",
            f"see {systemd_manager.words(self.manager.command('status', systemd_unit.NAME))} and {self.host.home.log}",
        )

    def _must(self, *words: str) -> None:
        code, printed = self.manager.run(*words)
        if code:
            last = printed.splitlines()[-1][:300] if printed else f"exit {code}"
            raise HoldfastError("failed", f"systemctl {words[0]}: {last}", "see journalctl, or hold service status")

    def _stop_stranger(self) -> None:
        """A daemon outside of the unit would keep the home's lock; sessions go on without it."""
        pid = daemon_pid(self.host)
        if pid is None or systemd_manager.in_our_unit(pid):
            return
        stop_daemon(self.host)

    def _serving(self, deadline: float, clock: Callable[[], float]) -> int | None:
        pause = 0.01
        while clock() < deadline:
            pid = daemon_pid(self.host)
            if pid is not None:
                return pid
            select.select([], [], [], pause)  # the manager tells of the exec, nobody of the first answer
            pause = min(pause * 2, 0.2)
        return None

    def _main_pid(self) -> int | None:
        return int(self.manager.show("MainPID").get("MainPID") or 0) or None

    def commands_left(self) -> list[str]:
        """What to type where the manager can be reached."""
        return [
            systemd_manager.words(self.manager.command("daemon-reload")),
            systemd_manager.words(self.manager.command("enable", "--now", systemd_unit.NAME)),
        ]

    def remove(self) -> None:
        there = self.installed()
        if there is None:
            raise HoldfastError("not_found", f"there is no {self.path}", "hold service status")
        if not systemd_unit.is_ours(there):
            raise HoldfastError("conflict", f"{self.path} was not written by hold", "remove it by hand")
        if self.manager.reachable:
            self._must("disable", "--now", systemd_unit.NAME)
        os.unlink(self.path)
        wanted = systemd_unit.link_of(self.path, self.scope)
        if os.path.islink(wanted):
            os.unlink(wanted)
        if self.manager.reachable:
            self._must("daemon-reload")

    def state(self) -> dict[str, Any]:
        there = self.installed()
        shown: dict[str, str] = {}
        if there is not None and self.manager.reachable:
            shown = self.manager.show("ActiveState", "UnitFileState", "MainPID")
        return {
            "installed": there is not None,
            "home": systemd_unit.home_in(there) if there is not None else None,
            "enabled": shown.get("UnitFileState") == "enabled",
            "active": shown.get("ActiveState") == "active",
            "pid": int(shown.get("MainPID") or 0) or None,
            "daemon_pid": daemon_pid(self.host),
            "lingers": self.lingers if self.scope == systemd_unit.USER else None,
        }
