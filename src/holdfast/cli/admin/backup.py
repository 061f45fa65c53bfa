"""Save the home to one file (tar.gz): sessions, output, exits, commands. Sessions keep running while it is written.

  hold backup holdfast.tar.gz
  hold backup - | ssh elsewhere 'cat > holdfast.tar.gz'

The file holds the sessions' environments, so only you can read it; keep it that way. It holds no processes: after a
restore, a session that was running is shown as lost, with its output.
"""

from __future__ import annotations

import os
import stat
import sys
import time

from ...client._sync.host import Host
from ...client.admin import backup
from ...client.process import check_home
from ...model.errors import HoldfastError, invalid, not_found
from ...model.times import rfc3339
from ...version import VERSION
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write (-: stdout)")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    home = Host(autostart=False).home.path
    if not os.path.isdir(home):
        raise not_found(f"no home at {home}", "start a first session: hold run")
    check_home(home)
    about = {"version": VERSION, "created_at": rfc3339(time.time()), "home": home}
    if args.file == "-":
        if sys.stdout.isatty() or args.json:
            raise invalid(
                "refusing to write a backup to the terminal", "hold backup FILE, or pipe it: hold backup - | …"
            )
        backup.write(home, sys.stdout.buffer, about)
        return 0
    path = os.path.abspath(args.file)
    if os.path.realpath(path).startswith(os.path.realpath(home) + os.sep):
        raise invalid("the backup file would be inside the home that it saves", "choose a path outside the home")
    try:
        counts = _write(home, path, about)
    except OSError as e:
        raise HoldfastError("failed", f"cannot write {path}: {e.strerror or e}", "choose another path") from None
    facts = {"file": path, **counts, "size": os.stat(path).st_size, **about}
    if args.json:
        printing.print_json(facts)
    else:
        print(
            f"{path}: {counts['sessions']} sessions, {printing.size(counts['bytes'])} in {printing.size(facts['size'])}"
        )
    return 0


def _write(home: str, path: str, about: dict[str, str | None]) -> dict[str, int]:
    """Write a temporary file next to it first, so that an older backup stays whole until the new one is complete."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb") as f:  # a pipe or a device is written to, not replaced
            return backup.write(home, f, about)
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as f:
            counts = backup.write(home, f, about)
            f.flush()
            os.fsync(fd)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return counts
