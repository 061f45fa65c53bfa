"""bubblewrap on this machine: where it is, what it has to bind, and whether it works, found out by running it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from ..model import isolation
from ..model.errors import HoldfastError
from ..model.isolation import Machine, Place, View

_PROBE_S = 20.0  # it takes milliseconds; a machine that swaps may take seconds, one that hangs never ends
_PATH = "/usr/local/bin:/usr/bin:/bin"  # looked at besides PATH: a daemon may have been started with little of it
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_NAMESPACES = (
    "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, or "
    "kernel.apparmor_restrict_unprivileged_userns=0, or the security profile of your container"
)
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
    return Machine(tuple(folders), files, _install(), find("setsid"))


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


def probe(path: str, options: list[str], machine: Machine) -> str:
    """Start nothing of consequence with the very options of a start; bubblewrap's complaint, '' when it works."""
    nothing = isolation.launched([find("true")], machine, terminal=False)
    with tempfile.TemporaryFile() as given:
        given.write(b"".join(os.fsencode(word) + b"\0" for word in options))
        given.seek(0)
        try:
            done = subprocess.run(
                [path, "--args", str(given.fileno()), "--", *nothing],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False, cwd="/",
                pass_fds=[given.fileno()], env={"PATH": _PATH},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as e:
            return str(e)
    if done.returncode == 0:
        return ""
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return words[-1][:300] if words else f"it ended with {done.returncode}"


def advice(complaint: str, otherwise: str = "hold doctor says more") -> str:
    """What usually helps against a complaint."""
    if "namespace" in complaint or "uid map" in complaint or "Operation not permitted" in complaint:
        return _NAMESPACES
    return otherwise


def works_here() -> tuple[str, str]:
    """(path, complaint) of a whole isolated start in folders made for it; for `hold doctor`."""
    path, machine = find(), look()
    with tempfile.TemporaryDirectory(prefix="holdfast-probe-") as made_here:
        folder = os.path.realpath(made_here)
        work, home, door, exchange = (os.path.join(folder, name) for name in ("work", "home", "door", "exchange"))
        for made in (work, home, door, exchange):
            os.mkdir(made)
        place = Place(home, door, exchange, os.path.expanduser("~"))
        return path, probe(path, isolation.options(View(work), machine, place, {"PATH": _PATH}), machine)
