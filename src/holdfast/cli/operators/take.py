"""Take a session's controls: only you can type into it, resize it and signal it until you release them.

  hold take deploy --why "the agent is stuck at a prompt"
  hold take deploy --force             take them from a person without asking (default: ask, and wait 30 s)

You hold them until you release them (hold release) or hand them on, or a person takes them; at most 12 hours
(`takeover_max`) while none of your terminals or pages is attached.
"""

from __future__ import annotations

from ..ui import arguments, printing
from ..ui.each_session import say_holder
from ..ui.held_for_caller import passing_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("--force", action="store_true", help="also from a person, without waiting for an answer")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    done = passing_host().call("take", session=args.session, force=args.force, why=args.why)
    if args.json:
        printing.print_json(done)
        return 0
    source = done["controls"].get("from")
    hand, release = f"hold hand {args.session} gives them back to", f"hold release {args.session} gives them back"
    say_holder(args.session, done["controls"], f"; {hand} {source['name']}" if source else f"; {release}")
    if done.get("flushed"):
        printing.note(f"hold: {done['flushed']} typed bytes that the program had not read were discarded")
    return 0
