"""Take a session's controls: from now on only you type into it, size it and signal it. `hold release` gives them back.

  hold take deploy --why "the agent is stuck at a prompt"
"""

from __future__ import annotations

from ..client.sync import Host
from . import arguments, output
from .several import say_holder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    done = Host().call("take", session=args.session, why=args.why)
    if args.json:
        output.print_json(done)
        return 0
    say_holder(args.session, done["controls"], f"; hold release {args.session} gives them back")
    if done.get("flushed"):
        output.note(f"hold: {done['flushed']} typed bytes that the program had not read were dropped")
    return 0
