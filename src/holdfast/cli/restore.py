"""Bring a home back from a backup, into a home without sessions.

  hold restore holdfast.tar.gz
  HOLDFAST_HOME=/tmp/look hold restore holdfast.tar.gz      to look at it elsewhere
  hold restore holdfast.tar.gz --force                      move the home that is there aside first

What ran when the backup was taken has no process any more: it shows as lost, with its output. Nothing is started,
whatever its restart policy; hold restart SESSION does. While sessions run in the home, also --force refuses.
"""

from __future__ import annotations

import sys
import time

from ..client.restoring import restore
from ..client.sync import Host
from ..model.errors import HoldfastError
from . import arguments, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the backup; - is stdin")
    parser.add_argument("--force", action="store_true", help="move a home with sessions aside, and stop its host")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    host = Host(autostart=False)
    try:
        about = _restore(args.file, host, force=args.force)
    except OSError as e:
        raise HoldfastError("failed", f"cannot restore {args.file} to {host.home.path}: {e.strerror or e}") from None
    facts = {**about, "home": host.home.path, "from_home": about["home"]}
    if args.json:
        output.print_json(facts)
        return 0
    print(f"{facts['home']}: {facts['sessions']} sessions of {output.safe(facts['created_at'])}; hold ls -a shows them")
    if facts["moved_to"]:
        output.note(f"the home that was there is now {facts['moved_to']}")
    return 0


def _restore(path: str, host: Host, *, force: bool) -> dict[str, Any]:
    stamp = time.strftime("before-%Y%m%dT%H%M%SZ", time.gmtime())
    if path == "-":
        return restore(sys.stdin.buffer, host, force=force, stamp=stamp)
    with open(path, "rb") as source:
        return restore(source, host, force=force, stamp=stamp)
