"""The systemd unit that runs the host: its text, where it belongs, and what an installed one says. Pure.

`KillMode=process`: systemd ends the daemon alone. Zygote and keepers are in the unit's control group too, and with any
other mode `systemctl restart` would end every session. systemd then finds the keepers when it starts the unit again,
logs them as left-over processes, and leaves them alone.
"""

from __future__ import annotations

import os
import re

NAME = "holdfast.service"
USER, SYSTEM = "user", "system"
_MARK = "# Written by `hold service install`"


def choose(uid: int, *, user_manager: bool, system_manager: bool) -> str:
    """Whose manager. Root's host belongs to the machine, unless only root's own manager is there."""
    if uid != 0:
        return USER
    return USER if user_manager and not system_manager else SYSTEM


def path_of(scope: str, environ: dict[str, str], user_home: str) -> str:
    if scope == SYSTEM:
        return "/etc/systemd/system/" + NAME
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(user_home, ".config")
    return os.path.join(config, "systemd", "user", NAME)


def link_of(path: str, scope: str) -> str:
    """What `systemctl enable` makes beside the unit."""
    return os.path.join(os.path.dirname(path), _target(scope) + ".wants", NAME)


def _target(scope: str) -> str:
    return "default.target" if scope == USER else "multi-user.target"


def text(scope: str, python: str, entry: str, home: str, home_from_environment: str | None) -> str:
    """The unit. The home is on its command line; HOLDFAST_HOME goes along when the user has set it."""
    lines = [
        f"{_MARK}; hold service uninstall removes it.",
        "[Unit]",
        "Description=Holdfast host: live sessions that outlive their clients",
        "",
        "[Service]",
        # The manager says "started" when the daemon serves, so that whoever starts it need not guess.
        "Type=notify",
        f"ExecStart={quoted(python)} -I {quoted(entry)} {quoted(home)}",
        # % and \ are the only special characters of Environment=; $ stands for itself there.
        *([f"Environment={_double_quoted('HOLDFAST_HOME=' + home)}"] if home_from_environment else []),
        "WorkingDirectory=/",
        "UMask=0077",
        "# The daemon alone is ended: sessions live on through stop and restart, in this unit's control group.",
        "KillMode=process",
        "Restart=on-failure",
        # At once: a client that comes before it is back asks for it to be started.
        "RestartSec=0",
        "# Keepers make groups of their own below this one.",
        "Delegate=yes",
        "# A session's program that runs out of memory must not take the daemon with it.",
        "OOMPolicy=continue",
        "# All sessions together are in here: each has limits of its own.",
        "TasksMax=infinity",
        "LimitNOFILE=65536:524288",
        "",
        "[Install]",
        f"WantedBy={_target(scope)}",
    ]
    return "\n".join(lines) + "\n"


def quoted(word: str) -> str:
    """One word of ExecStart: quotes, backslashes, `%` specifiers and `$` variables all lose their meaning."""
    return _double_quoted(word).replace("$", "$$")


def _double_quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{escaped}"'


def is_ours(unit: str) -> bool:
    return unit.startswith(_MARK)


def home_in(unit: str) -> str | None:
    """The home an installed unit serves."""
    found = re.search(r'^ExecStart=.* "((?:[^"\\]|\\.)*)"$', unit, re.MULTILINE)
    if not found:
        return None
    plain = found[1].replace("$$", "$").replace("%%", "%")
    return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], plain)


def service_of(cgroup: str) -> bool:
    """Whether /proc/PID/cgroup says that a process runs in our unit."""
    return any(f"/{NAME}" in line for line in cgroup.splitlines())
