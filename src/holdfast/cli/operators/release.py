"""Release a session's controls; the next operator to type takes them.

hold release deploy
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
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    done = Host().call("release", session=args.session, why=args.why)
    if args.json:
        printing.print_json(done)
    else:
        epoch = done["controls"]["epoch"]
        say(f"the controls of {args.session} are free (epoch {epoch} is over)", args.session, epoch)
    return 0
