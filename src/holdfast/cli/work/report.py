"""Report what was done in a time span, by whom, with what result.

hold report                                the last seven days of the current project, or of all work
hold report --since 2026-01-01 --until 2026-02-01
hold report --since 24h --json
hold report --task 1.5 --html task.html    one self-contained page with a timeline
"""

from __future__ import annotations

import sys
import time

from ...client._sync.host import Host
from ...model.durations import moment_s
from ...model.errors import HoldfastError
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_WEEK_S = 7 * 86400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", metavar="T", help="7d (ago), 2026-01-31, or 2026-01-31T12:00:00Z (default: 7d)")
    parser.add_argument("--until", metavar="T", help="the same forms (default: now)")
    arguments.project(parser)
    parser.add_argument("--task", metavar="ID", help="only this task (default span: since its beginning)")
    parser.add_argument("--all", action="store_true", help="all work, not only the current project")
    parser.add_argument("--markdown", action="store_true", help="print Markdown (default)")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page (-: stdout)")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if sum((args.json, args.markdown, args.html is not None)) > 1:
        raise HoldfastError("usage", "give only one format", "--json, --markdown or --html FILE")
    now = time.time()
    since = moment_s(args.since, now) if args.since else None if args.task else now - _WEEK_S
    until = moment_s(args.until, now) if args.until else None
    if since is not None and since >= (now if until is None else until):
        raise HoldfastError("usage", "--until is before --since", "give an earlier --since")
    found = Host().work.report(task=args.task, project=args.project, since=since, until=until, everything=args.all)
    if args.json:
        printing.print_json(found)
        return 0
    from ...client.reporting import html_page, markdown

    if args.html is None or args.html == "-":
        sys.stdout.write(markdown(found) if args.html is None else html_page(found))
        return 0
    try:
        with open(args.html, "w", encoding="utf-8") as file:
            file.write(html_page(found))
    except OSError as e:
        raise HoldfastError("failed", f"cannot write {args.html}: {e.strerror}", "choose another file") from None
    printing.note(f"written to {args.html}")
    return 0
