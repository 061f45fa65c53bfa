"""bubblewrap on this machine: where it is, what it has to bind, and whether it works, found out by running it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from typing import Any

from ..model.errors import HoldfastError
from ..model.sessions import isolation
from ..model.sessions.isolation import Machine, Place, View
from . import bubblewrap_entry, programs

_PROBE_S = 20.0  # it takes milliseconds; a machine that swaps may take seconds, one that hangs never ends
_PATH = "/usr/local/bin:/usr/bin:/bin"  # looked at besides PATH: a daemon may have been started with little of it
_PACKAGE = programs.ROOT
_NAMESPACES = (
    "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or "
    "kernel.apparmor_restrict_unprivileged_userns=0, or the security profile of your container"
)
# File systems through which the kernel itself is seen and set: some show every process, some obey whoever writes.
_KERNELS = frozenset(
    {"proc", "sysfs", "cgroup", "cgroup2", "devtmpfs", "devpts", "debugfs", "tracefs", "securityfs", "selinuxfs", "bpf"}
    | {"configfs", "pstore", "efivarfs", "binfmt_misc", "fusectl", "mqueue", "nsfs", "nfsd", "rpc_pipefs", "resctrl"}
)
_ANOTHER_USER = (
    "run the host as an ordinary user, or keep the folder on a file system that can show root's files as another's "
    "(ext4, xfs and btrfs can; Linux 5.12)"
)
# Above what directory services hand out (2,000,200,000), below what systemd calls foreign (2,147,352,576).
_UID_FIRST, _UIDS = 2_100_000_000, 1 << 24
_INSTALL = "install bubblewrap (apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap)"


def find(name: str = "bwrap") -> str:
    """Where the program is; says what to install where it is not."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":" + _PATH)
    if path is None and name == "bwrap":
        raise HoldfastError("failed", "--isolate needs bubblewrap, which is not installed", _INSTALL)
    if path is None:
        raise HoldfastError("failed", f"--isolate needs {name}, which is not installed", "install util-linux")
    return os.path.abspath(path)


def look() -> Machine:
    """The system's folders as they are here, and our own code."""
    folders = []
    for path in isolation.SYSTEM:
        if os.path.islink(path):
            folders.append((path, os.readlink(path)))
        elif os.path.isdir(path):
            folders.append((path, ""))
    names = os.path.realpath("/etc/resolv.conf")  # often a link into /run, which is not shown
    files = (names,) if os.path.exists(names) and not _system(names) else ()
    return Machine(tuple(folders), files, _install(), find("setsid"), _switches(), kernel_views())


def _switches() -> tuple[str, ...]:
    """Entries of /proc that are no process's, as far as something can be written in them. Links lead to a process's."""
    found = []
    with os.scandir("/proc") as entries:
        for one in entries:
            if one.name.isdigit() or one.is_symlink():
                continue
            try:
                if one.is_dir() or one.stat().st_mode & 0o222:
                    found.append(one.path)
            except OSError:
                continue
    return tuple(sorted(found))


def kernel_views() -> tuple[tuple[str, str], ...]:
    """(place, kind) of every mount of the kernel's own file systems."""
    found = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            before, _, after = line.partition(b" - ")
            kind = after.split()[0].decode()
            if kind in _KERNELS:
                found.append((os.fsdecode(before.split()[4].decode("unicode_escape").encode("latin-1")), kind))
    return tuple(sorted(set(found)))


def _install() -> tuple[str, ...]:
    """The folders that `hold` needs inside: its package, its dependencies and its Python."""
    beside = os.path.dirname(_PACKAGE)
    package = beside if os.path.basename(beside) in ("site-packages", "dist-packages") else _PACKAGE
    wanted = {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, package)}
    return tuple(sorted(path for path in wanted if os.path.isdir(path) and not _system(path)))


def _system(path: str) -> bool:
    return any(isolation.within(path, folder) for folder in isolation.SYSTEM)


def outside_environment(session: str, home: str) -> dict[str, str]:
    """bubblewrap's own: enough to be known as the session's, nothing that the session chose."""
    return {"PATH": _PATH, "HOLDFAST_SESSION": session, "HOLDFAST_HOME": home}


def order(session: str, view: View, machine: Machine, place: Place, env: dict[str, str]) -> dict[str, Any]:
    """What `wrapping.enter` needs for a start, but the command and bubblewrap's environment. Where we are the kernel's
    root, it is a start as another user."""
    order: dict[str, Any] = {"path": find(), "env": {}}
    staged = None
    if bubblewrap_entry.kernels_root():
        trees = isolation.trees(view, machine, place)
        staged = {path: f"{bubblewrap_entry.STAGE}/{n}" for n, (path, _) in enumerate(trees)}
        order |= {"uid": _uid(session), "trees": trees}
    return order | {"options": isolation.options(view, machine, place, env, staged)}


def _uid(session: str) -> int:
    """An isolated session's own, where we are root, so that no two share limits, keys or signals."""
    return _UID_FIRST + zlib.crc32(session.encode()) % _UIDS


def probe(order: dict[str, Any], machine: Machine) -> str:
    """Start nothing of consequence with the very order of a start; the complaint, '' when it works."""
    whole = order | {"command": isolation.launched([find("true")], machine, terminal=False)}
    if order.get("uid"):
        command: list[Any] = [sys.executable, "-I", "-S", bubblewrap_entry.__file__]
        fds: list[int] = []
        given = json.dumps(whole).encode()
    else:
        (command, fds), given = bubblewrap_entry.words(whole), b""
    try:
        done = subprocess.run(
            command,
            input=given,
            capture_output=True,
            timeout=_PROBE_S,
            check=False,
            cwd="/",
            pass_fds=fds,
            env={"PATH": _PATH},
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    finally:
        for fd in fds:
            os.close(fd)
    if done.returncode == 0:
        return ""
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return words[-1][:300] if words else f"it ended with {done.returncode}"


def advice(complaint: str, otherwise: str = "hold doctor says more") -> str:
    """What usually helps against a complaint."""
    if "another user than root" in complaint and "not permitted" not in complaint:
        return _ANOTHER_USER
    if "namespace" in complaint or "uid map" in complaint or "Operation not permitted" in complaint:
        return _NAMESPACES
    return otherwise


def works_here() -> tuple[str, str]:
    """(path, complaint) of a whole isolated start in folders made for it; for `hold doctor`."""
    machine = look()
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as made_here:
        folder = os.path.realpath(made_here)
        work, home, door, exchange = (os.path.join(folder, name) for name in ("work", "home", "door", "exchange"))
        for made in (work, home, door, exchange):
            os.mkdir(made)
        place = Place(home, door, exchange, os.path.expanduser("~"))
        tried = order("probe", View(work), machine, place, {"PATH": _PATH})
        return tried["path"], probe(tried, machine)
