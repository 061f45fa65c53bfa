"""Remove ended sessions and their output, or ended work. Live, unfinished and in-doubt entries are never removed.

hold prune
hold prune --older-than 7d
hold prune --work --older-than 90d       runs and projects (all tasks finished) that ended before
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from ..ui.each_session import say, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", type=seconds, metavar="D", help="only what ended at least this long ago: 12h, 7d"
    )
    parser.add_argument("--work", action="store_true", help="ended runs and finished projects, with their artifacts")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.work:
        return _work(args)
    done = Host().call("prune", older_than_s=args.older_than or 0.0, why=args.why)
    if args.json:
        printing.print_json(done)
        return 0
    for session in done["removed"]:
        say(f"{session['name']} ({session['id']}) removed", session["name"], session["id"])
    if not done["removed"]:
        printing.note("nothing to remove")
    return 0


def _work(args: argparse.Namespace) -> int:
    if args.older_than is None:
        raise HoldfastError("usage", "removing work cannot be undone", "give its minimum age: --older-than 90d")
    done = Host().work.prune(args.older_than)
    if args.json:
        printing.print_json(done)
    elif not (done["runs"] or done["projects"]):
        printing.note("nothing to remove")
    else:
        printing.note(
            f"removed: {done['runs']} runs with {done['steps']} steps, {done['projects']} projects with"
            f" {done['tasks']} tasks, and {printing.size(done['bytes'])} of artifacts"
        )
    return 0
