"""Show who did what, in order: starts, typing, commands, signals, takeovers, grants and refusals.

hold timeline                   everything on this host that you may see
hold timeline web --since 1h
hold timeline web --json        the same as data
"""

from __future__ import annotations

import sys
import time

from ...client._sync.host import Host
from ...model import timeline_text
from ...model.durations import moment_s
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]

_SHOWN = 200  # entries without -n: about a screen; -n 0 shows all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser, nargs="?")
    parser.add_argument("--since", metavar="TIME", help="10m (ago), or 2026-01-31T12:00:00Z")
    parser.add_argument("-n", "--limit", metavar="N", type=int, help=f"the last N entries (default {_SHOWN}; 0: all)")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    entries = fetch(Host(), args.session, _since(args), _SHOWN if args.limit is None else args.limit)
    if args.json:
        printing.print_json(entries)
        return 0
    colours = printing.colours()
    day = ""
    for line in timeline_text.tell(entries, names=args.session is None):
        if sys.stdout.isatty() and line.day != day:
            day = line.day
            print(printing.paint(day, "dim"))
        if sys.stdout.isatty():
            print(f"{printing.paint(line.clock, 'dim', colours)}  {printing.safe(line.text)}")
        else:
            print(f"{line.day}T{line.clock}Z\t{printing.safe(line.text)}")
    return 0


def _since(args: argparse.Namespace) -> float | None:
    return None if args.since is None else moment_s(args.since, time.time())


def fetch(host: Host, session: str | None, since: float | None, wanted: int) -> list[Json]:
    """The last `wanted` entries (0: all), oldest first, read page by page from the end."""
    entries: list[Json] = []
    before = None
    while wanted == 0 or len(entries) < wanted:
        left = 1000 if wanted == 0 else wanted - len(entries)
        page = host.timeline(session, since=since, before=before, limit=min(1000, left))
        entries = page["entries"] + entries
        before = page["next"]
        if before is None:
            break
    return entries
