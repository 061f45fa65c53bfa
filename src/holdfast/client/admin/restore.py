"""Bringing a home back from a backup: beside the old one first, then in its place, never over a home that is in use."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil

from ...model.errors import HoldfastError
from ...model.home import Home
from ...system import owner_trust
from ...system.atomic_files import read_json, write_json
from ...system.kernel import lock_held
from . import backup
from .stop_host import stop_daemon

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO, Any

    from .._sync.host import Host

_SPARE_BYTES = 64 << 20  # left free on the disk for everybody else


def restore(source: IO[bytes], host: Host, *, force: bool, stamp: str) -> dict[str, Any]:
    """Unpack `source` as the host's home; what the backup says of itself, and where an old home went.

    With `force` a host without running sessions is stopped and its home moved aside.
    """
    home = host.home
    _refuse_sessions(home, force=force)
    if force:
        stop_daemon(host)
    with _unused(home):
        _refuse_sessions(home, force=force)
        staged = f"{home.path}.restoring-{os.getpid()}"
        os.mkdir(staged, 0o700)
        try:
            disk = os.statvfs(staged)
            about = backup.unpack(source, staged, disk.f_bavail * disk.f_frsize - _SPARE_BYTES)
            about["sessions"] = _settle(Home(staged))
            # Whoever made the file wrote them: they are off until a person has looked.
            write_json(Home(staged).restored, {"at": stamp, "from": str(about.get("home"))})
            about["moved_to"] = None
            if _sessions(home) or os.path.exists(home.ledger):  # keys and journal are never mixed with others
                about["moved_to"] = _swap(staged, home, stamp)
            else:
                _fill(staged, home)
        finally:
            shutil.rmtree(staged, ignore_errors=True)
    _sync(home.path)
    return about


@contextlib.contextmanager
def _unused(home: Home) -> Iterator[None]:
    """Hold the host's lock meanwhile: no daemon runs, and none can start."""
    made = not os.path.isdir(home.path)
    os.makedirs(home.path, mode=0o700, exist_ok=True)
    owner_trust.check_home(home.path)
    lock = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise HoldfastError(
            "conflict", f"a host is running in {home.path}", "hold down first, or restore elsewhere with HOLDFAST_HOME"
        ) from None
    try:
        yield
    except BaseException:
        if made:  # leave no trace of a restore that did not happen
            with contextlib.suppress(OSError):
                os.unlink(home.lock)
                os.rmdir(home.path)
        raise
    finally:
        os.close(lock)


def _sessions(home: Home) -> list[str]:
    try:
        return [n for n in os.listdir(home.sessions) if n.startswith("ses_")]
    except OSError:
        return []


def _refuse_sessions(home: Home, *, force: bool) -> None:
    there = _sessions(home)
    running = [n for n in there if lock_held(home.session(n).keeper_lock)]
    if running:
        # Their keepers write by path: they would go on writing into what was restored.
        raise HoldfastError(
            "conflict", f"{len(running)} sessions are running in {home.path}", "hold down --all ends them"
        )
    if there and not force:
        raise HoldfastError(
            "conflict",
            f"there are {len(there)} sessions in {home.path} already",
            "--force moves that home aside; or restore elsewhere with HOLDFAST_HOME",
        )


def _settle(home: Home) -> int:
    """Nothing starts by itself in a restored home, whatever its restart policy: `hold restart` does, when wanted."""
    names = _sessions(home)
    for name in names:
        folder = home.session(name)
        os.makedirs(folder.links, mode=0o700, exist_ok=True)
        state = read_json(folder.host_state) or {}
        write_json(folder.host_state, {**state, "stopped": True, "restart_at": None, "reap_at": None}, durable=False)
    return len(names)


def _swap(staged: str, home: Home, stamp: str) -> str:
    """The old home goes aside as a whole, lock and all."""
    aside = f"{home.path}.{stamp}"
    os.rename(home.path, aside)
    try:
        os.rename(staged, home.path)
    except OSError:
        os.rename(aside, home.path)
        raise
    return aside


def _fill(staged: str, home: Home) -> None:
    """A home without sessions keeps its folder; what was restored takes the place of what it had of the same name."""
    for name in sorted(os.listdir(staged)):
        target = os.path.join(home.path, name)
        if os.path.isdir(target):
            os.rmdir(target)  # an empty sessions/; anything else is not ours to remove, and is refused
        os.rename(os.path.join(staged, name), target)


def _sync(path: str) -> None:
    for folder in (path, os.path.dirname(path)):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
