"""Computes what an isolated program can access, as bubblewrap's options. Pure.

The program can read the system's folders and write its own; the rest is empty and private. In place of Holdfast's home
there is a folder that holds only its session socket.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import HoldfastError, invalid
from ..home import ISOLATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

# Where programs live. /etc for names, certificates and settings; /nix and /gnu are whole systems in one folder.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store", "/gnu/store")
# Too much to give as a working folder: these hold other users' files, or sockets that lead outside.
_SHARED = ("/tmp", "/var/tmp", "/run", "/var", "/sys", "/boot", "/home", "/root", "/srv", "/mnt", "/media")
# The kernel's file systems; the program gets new ones, which show only itself.
_PRIVATE = ("/proc", "/dev")
EXCHANGE = "/.holdfast/exec"  # inside: where exec puts its scripts; at the root, which is always writable for Holdfast
# Names that lead to agents, buses, displays and databases outside, or name an operator's key.
_HIDDEN = frozenset(
    {"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"}
    | {"XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "PULSE_SERVER", "NOTIFY_SOCKET", "TMPDIR"}
    | {"HOLDFAST_OPERATOR", "HOLDFAST_STORE", "HOLDFAST_CACHE"}
)


class View(NamedTuple):
    """The requested access: paths are absolute and free of links."""

    cwd: str  # where it starts; among `write` or below one of them
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: bool = True

    def as_dict(self) -> dict[str, Any]:
        return {"cwd": self.cwd, "read": list(self.read), "write": list(self.write), "network": self.network}


class Machine(NamedTuple):
    """The facts of the machine that the view needs."""

    folders: tuple[tuple[str, str], ...]  # system folders, with the target of those that are links ("" otherwise)
    files: tuple[str, ...] = ()  # to be readable too: what /etc/resolv.conf links to
    install: tuple[str, ...] = ()  # Holdfast's own code and its Python, so that `hold` works inside; never writable
    setsid: str = "/usr/bin/setsid"
    switches: tuple[str, ...] = ()  # what in /proc is about the machine and not about a process: read-only inside
    views: tuple[tuple[str, str], ...] = ()  # where the kernel's own file systems are mounted, with their kind


class Place(NamedTuple):
    """The outside paths of this session's parts, and of the home to hide."""

    home: str
    door: str
    exchange: str
    user_home: str
    hidden: tuple[str, ...] = ()  # folders to cover where a bound one would show them
    sockets: tuple[str, ...] = ()  # sockets to cover likewise


def from_dict(data: Mapping[str, Any]) -> View:
    return View(str(data["cwd"]), tuple(data["read"]), tuple(data["write"]), bool(data["network"]))


def within(path: str, folder: str) -> bool:
    """Whether `path` is the folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def check(view: View, home: str, user_home: str, views: Iterable[tuple[str, str]] = ()) -> None:
    """Refuse access that is wider than intended. `views` are mounts of the kernel's file systems."""
    for path in (view.cwd, *view.read, *view.write):
        if not os.path.isabs(path) or "\0" in path:
            raise invalid(f"{path[:200]!r} is not an absolute path", "give a folder or a file")
        if within(path, home):
            raise invalid(f"{path[:200]} is inside Holdfast's home", "an isolated program has no access to it")
    for path in (*view.read, *view.write):
        if path == "/" or any(within(path, private) for private in _PRIVATE):
            raise invalid(f"{path[:200]} is too wide for an isolated program", "give only the folders it needs")
    for place, kind in views:
        readable = () if kind == "sysfs" else view.read
        for path in (view.cwd, *view.write, *readable):
            if within(path, place):
                may = "only be read by" if kind == "sysfs" else "not be shown to"
                raise invalid(f"{path[:200]} is a kernel file system and can {may} an isolated program", "leave it out")
    given = any(within(view.cwd, path) for path in view.write)
    if not given and (too_wide(view.cwd, user_home) or any(within(view.cwd, private) for private in _PRIVATE)):
        raise invalid(
            f"an isolated program can write to its folder, and {view.cwd[:200]} is too wide for that",
            "start it in a project's folder (--cwd DIR), or pass --write DIR",
        )
    check_beside(view, home)


def check_beside(view: View, home: str) -> None:
    """Refuse a view that can write a folder above the home: a program that renames it could put its own home there, and
    the next command outside would send it the caller's environment."""
    for path in exposing(view, home):
        raise invalid(
            f"Holdfast's home, {home[:200]}, is below {path[:200]}, which the program could write",
            "give it another folder, or move the home: HOLDFAST_HOME",
        )


def exposing(view: View, home: str) -> list[str]:
    """The folders above the home that the view can write."""
    return [path for path in dict.fromkeys((view.cwd, *view.write)) if within(home, path)]


def too_wide(path: str, user_home: str) -> bool:
    """Whether a folder is or contains a home, a part of the system, or a shared place."""
    return any(within(other, path) for other in (user_home, *SYSTEM, *_SHARED))


def narrowed(parent: View, asked: View) -> View:
    """The view of a child that is started inside `parent`: at most the parent's access.

    What is bound are the parent's own roots, never a path below them: those the program inside can turn into a link
    to anything between the check and the mount. A folder below is entered inside, where a link leads nowhere else.
    """
    roots = (*parent.write, parent.cwd)
    for path in (asked.cwd, *asked.write):
        if not any(within(path, root) for root in roots):
            raise HoldfastError(
                "not_allowed", f"this session may not write {path[:200]}", "give only paths that it has itself"
            )
    for path in asked.read:
        if not any(within(path, root) for root in (*roots, *parent.read, *SYSTEM)):
            raise HoldfastError(
                "not_allowed", f"this session may not read {path[:200]}", "give only paths that it has itself"
            )
    write = tuple(dict.fromkeys(parent.write if any(within(parent.cwd, w) for w in parent.write) else roots))
    return View(asked.cwd, parent.read, write, parent.network and asked.network)


def environment(env: Mapping[str, str], home: str) -> dict[str, str]:
    """The session's environment without variables that lead outside."""
    kept = {name: value for name, value in env.items() if name not in _HIDDEN}
    return {**kept, "HOLDFAST_HOME": home, ISOLATED: "1"}


def trees(view: View, machine: Machine, place: Place) -> list[tuple[str, bool]]:
    """(path, whether it must appear as the program's own) of all shown paths that are not the system's."""
    bound = _binds(view, machine.install)
    return [*((path, False) for path in machine.files), *bound, (place.door, True), (place.exchange, True)]


def options(
    view: View, machine: Machine, place: Place, env: Mapping[str, str], staged: Mapping[str, str] | None = None
) -> list[str]:
    """bubblewrap's options, in order: later mounts cover earlier ones.

    `staged` gives other paths of `trees`, for a program that runs as another user outside than the root it appears as.
    """
    at = staged or {}
    out = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    out += [] if view.network else ["--unshare-net"]
    out += ["--cap-drop", "ALL"]  # root inside would otherwise keep them over its own namespaces
    out += ["--uid", "0", "--gid", "0"] if staged else []
    for path, target in machine.folders:
        out += ["--symlink", target, path] if target else ["--ro-bind", path, path]
    out += ["--proc", "/proc"]
    for path in machine.switches:  # bubblewrap skips what it cannot write to, which is unrelated
        out += ["--ro-bind", path, path]
    out += ["--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--dir", "/var/tmp"]
    if place.user_home != "/" and not any(within(place.user_home, path) for path in (*SYSTEM, *_PRIVATE)):
        out += ["--dir", place.user_home]
    for path in machine.files:
        out += ["--ro-bind-try", at.get(path, path), path]
    for path, writable in _binds(view, machine.install):
        out += ["--bind" if writable else "--ro-bind", at.get(path, path), path]
    shown = (*view.read, *view.write, view.cwd)
    below = {path for path, _ in machine.views if any(path != root and within(path, root) for root in shown)}
    below -= {path for path in below if any(within(path, root) and within(root, "/sys") for root in shown)}
    hidden = sorted({path for path in place.hidden if any(within(path, root) for root in shown)} | below)
    for path in hidden:
        out += ["--tmpfs", path]
    for path in place.sockets:
        if any(within(path, root) for root in shown) and not any(within(path, folder) for folder in hidden):
            out += ["--ro-bind", "/dev/null", path]
    out += ["--ro-bind", at.get(place.door, place.door), place.home]
    out += ["--bind", at.get(place.exchange, place.exchange), EXCHANGE, "--chdir", view.cwd, "--clearenv"]
    for name, value in environment(env, place.home).items():
        out += ["--setenv", name, value]
    return out


def _binds(view: View, install: Iterable[str]) -> list[tuple[str, bool]]:
    """(path, writable), outer folders first. Holdfast's code stays read-only inside a writable folder."""
    chosen = dict.fromkeys(view.read, False)
    chosen.update(dict.fromkeys(view.write, True))
    if not any(within(view.cwd, path) for path in view.write):
        chosen[view.cwd] = True
    chosen.update(dict.fromkeys(install, False))
    return sorted(chosen.items())


def launched(command: list[str], machine: Machine, *, terminal: bool) -> list[str]:
    """The command that bubblewrap starts: the program as the leader of its own session, as outside.

    bubblewrap keeps two processes around the program. They must not share its process group, or Ctrl-C
    would end them instead of reaching it; and the terminal is the program's, not theirs.
    """
    return [machine.setsid, *(["-c"] if terminal else []), *command]
