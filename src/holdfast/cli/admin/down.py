"""Stop the host. Sessions keep running, and the next command starts a host again. --all ends the sessions too.

hold down
hold down --all                ends every session, after a confirmation
"""

from __future__ import annotations

import os
import select
import sys

from ...client._sync.host import Host
from ...client.admin import web_process
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from ..ui.each_session import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_GONE_S = 30.0  # a daemon exits within milliseconds; a busy machine may need longer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="end every session as well")
    parser.add_argument("--yes", action="store_true", help="with --all: do not ask")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    # Sessions outlive their daemon: to end them all, one may have to be started first.
    host = Host(autostart=args.all and _has_sessions())
    try:
        about = host.call("ping")["host"]
    except HoldfastError as e:
        if e.code != "not_found":
            raise
        web_process.end(host.home)  # it outlives a daemon that was killed
        return _tell(args, None, [])
    names = [s["name"] for s in host.call("ls")] if args.all else []
    if names and not args.yes and not _agreed(names):
        printing.note("nothing was ended")
        return 1
    pidfd = _open(about["pid"])
    try:
        host.call("down", all=args.all, why=args.why)
    except HoldfastError as e:
        if e.code != "host_gone":
            raise  # else it exited before its answer came, which is the request
    _until_gone(pidfd, about["pid"])
    return _tell(args, about, names)


def _has_sessions() -> bool:
    try:
        return bool(os.listdir(Host().home.sessions))
    except OSError:
        return False


def _agreed(names: list[str]) -> bool:
    if not sys.stdin.isatty():
        hint = "no terminal to confirm at: pass --yes"
        raise HoldfastError("usage", f"--all ends {len(names)} sessions", hint)
    what = f"{len(names)} session{'' if len(names) == 1 else 's'} ({printing.safe(', '.join(names))[:200]})"
    sys.stderr.write(f"End {what} and stop the host? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _open(pid: int) -> int:
    """A pidfd of the daemon, opened before it is asked to stop: afterwards another process may have its pid."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1


def _until_gone(pidfd: int, pid: int) -> None:
    if pidfd < 0:
        return
    try:
        if not select.select([pidfd], [], [], _GONE_S)[0]:
            raise HoldfastError("timeout", f"the host (pid {pid}) has not ended yet", "check it: hold doctor")
    finally:
        os.close(pidfd)


def _tell(args: argparse.Namespace, about: dict[str, Any] | None, names: list[str]) -> int:
    if args.json:
        printing.print_json({"host": about, "ended": names})
    elif about is None:
        printing.note("no host is running here")
    else:
        words = f"{len(names)} ended with it" if args.all else "sessions keep running"
        say(f"the host (pid {about['pid']}) has stopped; {words}", about["id"], about["pid"], *names)
    return 0
