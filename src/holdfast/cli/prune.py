"""Remove ended sessions and their output. Live ones are never touched.

  hold prune
  hold prune --older-than 7d
"""

from __future__ import annotations

from ..client.sync import Host
from . import arguments, output
from .several import say, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older-than", type=seconds, default=0.0, metavar="D", help="only what ended before: 12h, 7d")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    done = Host().call("prune", older_than_s=args.older_than, why=args.why)
    if args.json:
        output.print_json(done)
        return 0
    for session in done["removed"]:
        say(f"{session['name']} ({session['id']}) is forgotten", session["name"], session["id"])
    if not done["removed"]:
        output.note("nothing to remove")
    return 0
