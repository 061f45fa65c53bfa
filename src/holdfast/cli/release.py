"""Give a session's controls back; whoever types next takes them.

hold release deploy
"""

from __future__ import annotations

from ..client.sync import Host
from . import arguments, output
from .several import say

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
        output.print_json(done)
    else:
        epoch = done["controls"]["epoch"]
        say(f"the controls of {args.session} are free (epoch {epoch} is over)", args.session, epoch)
    return 0
