"""A daemon that runs other code than this command: told, and replaced where that is safe. Sessions go on."""

from __future__ import annotations

import os

from ...model.errors import HoldfastError
from ...model.home import ISOLATED, Home
from ...system import source_build
from ...system.atomic_files import read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


def renew(home: Home, *, any_installation: bool = False) -> str | None:
    """Stop a daemon whose source was replaced since it started: the next request starts the new one. What to tell.

    The daemon of another installation is left alone, unless that is asked for: two that share a home would replace each
    other with every command.
    """
    running = None if os.environ.get(ISOLATED) else read_json(home.running_file)
    if running is None or not (
        any_installation or source_build.is_touched(running.get("root"), running.get("folders"))
    ):
        return None
    ours = running.get("root", source_build.ROOT) == source_build.ROOT  # one from before this was known has no other
    if not (ours or any_installation) or not _runs(running, home):
        return None
    if running.get("build") == source_build.build_id():
        _look_no_more(running, home)
        return None
    from .._sync.host import Host
    from .stop_host import stop_daemon

    other = "older than this command" if ours else f"of another installation ({running.get('root')})"
    try:
        stop_daemon(
            Host(home.path, autostart=False), only=running["pid"], why=f"replaced by build {source_build.build_id()}"
        )
    except HoldfastError as e:
        return f"the daemon is {other}, and not replaced: {e.message}; a person does that with hold up"
    return f"the daemon was {other}: it is replaced, and sessions go on"


def mismatch(about: Json) -> str | None:
    """What to tell where the daemon is another one than this command's all the same: a service starts it so."""
    if about.get("build") == source_build.build_id():
        return None
    return "the daemon runs another build than this command: see hold doctor, and hold service install"


def _look_no_more(running: Json, home: Home) -> None:
    """Folders were touched and no source: Python put its cache there. The next command need not hash it all."""
    if running.get("root") == source_build.ROOT:
        try:
            write_json(home.running_file, {**running, "folders": source_build.folders()}, durable=False)
        except OSError:
            pass  # it is hashed again


def unreadable(home: Home, e: Exception) -> HoldfastError | None:
    """An error in place of one that comes of reading an answer; None where the daemon that gave it is of our build."""
    running = read_json(home.running_file)
    if running is not None and running.get("build") == source_build.build_id():
        return None
    what = f"the daemon is of another build, and its answer cannot be read: {e!r}"
    return HoldfastError("failed", what, "hold up replaces it: sessions go on")


def _runs(running: Json, home: Home) -> bool:
    """Whether that very daemon is there: a host that was killed leaves its file, and pids are used again."""
    try:
        with open(f"/proc/{int(running['pid'])}/cmdline", "rb") as f:
            words = f.read().split(b"\0")
    except (OSError, KeyError, ValueError, TypeError):
        return False
    return os.fsencode(home.path) in words and any(w.endswith(b"/host/__main__.py") for w in words)
