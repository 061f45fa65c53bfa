"""Hand a session's controls, which you hold, to another operator, with a note.

hold hand deploy --note "fixed"      back to the operator you took them from
hold hand deploy bot --note "the schema is migrated; run the tests next"
"""

from __future__ import annotations

from ...client._sync.host import Host
from ..ui import arguments, printing
from ..ui.each_session import say_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument(
        "operator", metavar="OPERATOR", nargs="?", help="a name or an id (default: the operator you took them from)"
    )
    parser.add_argument("--note", metavar="TEXT", help="what the next holder should know")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    done = Host().call("hand", session=args.session, to=args.operator, note=args.note, why=args.why)
    if args.json:
        printing.print_json(done)
        return 0
    say_holder(args.session, done["controls"])
    return 0
