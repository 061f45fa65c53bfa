"""Starting the host daemon on first use, detached from whoever needed it first."""

from __future__ import annotations

import os
import sys

from ...model.errors import HoldfastError
from ...model.home import ISOLATED, Home
from ...system import owner_trust, programs

# The daemon outlives this client: it gets what it needs to find its files and programs, and nothing of the session.
_KEPT = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "XDG_RUNTIME_DIR",
    "XDG_DATA_HOME",
    "TMPDIR",
    "JUPYTER_PATH",
    "JUPYTER_DATA_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "HOLDFAST_KEYRING",
    "PYTHON_KEYRING_BACKEND",
)


def may_start() -> bool:
    """Whether this process may start a host: not inside an isolated session, whose view of the machine it would get."""
    return not os.environ.get(ISOLATED)


def start_host(home: Home) -> None:
    """Start the daemon and return when it serves (or when another one does). Raises with its own words if not."""
    if not may_start():
        raise HoldfastError("host_gone", "the host is not running", "any hold command outside this session starts it")
    _make_home(home)
    if not _started_by_unit(home):
        _start(home)


def _make_home(home: Home) -> None:
    try:
        os.makedirs(home.path, mode=0o700, exist_ok=True)
        owner_trust.check_home(home.path)  # another user may have been quicker to make it
        if not os.access(home.path, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as e:
        raise HoldfastError(
            "failed", f"cannot write to {home.path}: {e.strerror}", "set HOLDFAST_HOME to a folder of yours"
        ) from None


def _started_by_unit(home: Home) -> bool:
    """Where `hold service install` put a unit for this home, its manager starts the daemon, and keeps it."""
    from . import systemd_unit

    for scope in (systemd_unit.USER, systemd_unit.SYSTEM):
        try:
            with open(systemd_unit.path_of(scope, dict(os.environ), os.path.expanduser("~")), encoding="utf-8") as f:
                text = f.read()
        except (OSError, ValueError):
            continue
        if (
            not systemd_unit.is_ours(text)
            or systemd_unit.home_in(text) != home.path
            or (scope == systemd_unit.SYSTEM and os.getuid() != 0)
        ):
            continue
        from .systemd_manager import Manager

        manager = Manager(scope)
        if manager.reachable and manager.run("start", systemd_unit.NAME)[0] == 0:  # Type=notify: it serves now
            return True
    return False


def _first_setting() -> dict[str, str]:
    from ...model.work.store_setting import VARIABLES, checked

    found = {name: os.environ[variable] for name, variable in VARIABLES.items() if os.environ.get(variable)}
    if "store" in found:
        found["store"] = checked(found["store"])
    return {VARIABLES[name]: url for name, url in found.items()}


def _start(home: Home) -> None:
    import subprocess  # here: most commands find a daemon and need not pay for it

    ready, theirs = os.pipe()
    env = {k: v for k, v in os.environ.items() if k in _KEPT}
    env["HOLDFAST_HOME"] = home.path
    if not os.path.exists(home.host_file):  # the home is made now, and these are its setting from here on
        env |= _first_setting()
    try:
        # The entry forks at once and its parent ends: the daemon is nobody's child, and no zombie of ours later.
        launcher = subprocess.Popen(
            [sys.executable, "-I", programs.HOST, home.path, str(theirs)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            env=env,
            start_new_session=True,
            pass_fds=[theirs],
        )
    except OSError as e:
        os.close(ready)
        raise HoldfastError("failed", f"the host cannot be started: {e.strerror}", "hold doctor") from None
    finally:
        os.close(theirs)
    assert launcher.stderr is not None
    with launcher.stderr:
        launcher.wait()
        told = os.read(ready, 16)  # empty: it ended without serving
        os.close(ready)
        words = b"" if told else launcher.stderr.read()
    if told not in (b"ready", b"there"):
        last = words.decode("utf-8", "replace").strip().splitlines()
        if not last:  # it was killed before it could say anything: nothing is wrong with it, and it may be asked again
            raise HoldfastError("host_gone", "the host ended while it was starting", f"try again, or see {home.log}")
        raise HoldfastError("failed", f"the host did not start: {last[-1][:300]}", f"see {home.log}")
