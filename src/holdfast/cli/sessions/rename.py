"""Rename a session; its id stays the same.

hold rename bash-2 deploy
"""

from __future__ import annotations

from ...client._sync.host import Host
from ..ui import arguments, printing
from ..ui.each_session import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("name", metavar="NAME", help="the new name: letters, digits and . _ - + @")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    done = Host().call("rename", session=args.session, name=args.name, why=args.why)
    if args.json:
        printing.print_json(done)
    else:
        say(f"{done['id']} is now called {done['name']}", done["name"], done["id"])
    return 0
