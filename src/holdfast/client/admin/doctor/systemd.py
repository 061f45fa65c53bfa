"""The service manager: is there one, is our unit installed and serving, and do sessions outlive a logout."""

from __future__ import annotations

import os

from ....model.doctor_findings import Finding, ok, warn
from ....model.home import Home
from .. import systemd_manager, systemd_unit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def findings(home: Home, about: dict[str, Any] | None) -> list[Finding]:
    user, machine = systemd_manager.user_manager(), systemd_manager.system_manager()
    if not user and not machine:
        return [ok("service", "systemd runs neither this machine nor for this user; the host starts on first use")]
    scope = systemd_unit.choose(os.getuid(), user_manager=user, system_manager=machine)
    path = systemd_unit.path_of(scope, dict(os.environ), os.path.expanduser("~"))
    installed = _installed(path)
    served = bool(about) and systemd_manager.in_our_unit(int(about["pid"])) if about else False
    found = [judge_unit(scope, installed, home.path, running=about is not None, served=served)]
    if scope == systemd_unit.USER:
        found.append(
            judge_logout(
                lingers=systemd_manager.lingering(systemd_manager.user_name()),
                installed=installed is not None,
                kills=kill_user_processes(_logind()),
            )
        )
    return found


def judge_unit(scope: str, installed: str | None, home: str, *, running: bool, served: bool) -> Finding:
    """`installed` is the home that the installed unit serves; None without a unit."""
    if installed is None:
        return ok(
            "service",
            f"a {scope} service manager is there, {systemd_unit.NAME} is not installed (hold service install)",
        )
    if installed != home:
        return ok("service", f"{systemd_unit.NAME} serves another home, {installed}")
    if running and not served:
        return warn(
            "service",
            f"{systemd_unit.NAME} is installed, but the daemon that runs was started by a command",
            "hold service install puts the unit's own in its place: sessions go on",
        )
    return ok("service", f"{systemd_unit.NAME} is installed" + (" and runs the daemon" if served else ""))


def judge_logout(*, lingers: bool, installed: bool, kills: bool) -> Finding:
    if lingers:
        return ok("logout", "lingering is on: what runs goes on after a logout")
    if installed or kills:
        why = "the user's service manager ends with the last login" if installed else "logind has KillUserProcesses=yes"
        return warn("logout", f"lingering is off and {why}, sessions with it", "loginctl enable-linger")
    return ok("logout", "lingering is off; sessions started from a login go on after it (KillUserProcesses=no)")


def kill_user_processes(config: str) -> bool:
    """logind's setting; the last one counts, and its default is no."""
    value = "no"
    for line in config.splitlines():
        name, _, given = line.partition("=")
        if name.strip() == "KillUserProcesses":
            value = given.strip().lower()
    return value in ("yes", "true", "on", "1")


def _logind() -> str:
    paths = ["/etc/systemd/logind.conf"]
    for folder in ("/usr/lib/systemd/logind.conf.d", "/etc/systemd/logind.conf.d", "/run/systemd/logind.conf.d"):
        if os.path.isdir(folder):
            paths += sorted(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".conf"))
    text = []
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as f:
                text.append(f.read())
        except OSError:
            continue
    return "\n".join(text)


def _installed(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            return systemd_unit.home_in(f.read())
    except OSError:
        return None
