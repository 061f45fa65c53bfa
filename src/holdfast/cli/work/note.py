"""Add a note to a run's log, for the next worker.

hold note RUN 'the staging API is rate limited' --kind learned
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.work.effects import LOG_KINDS
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's id, or a prefix of it")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--kind", choices=LOG_KINDS[4:], default="note", help="the note's kind (default: note)")
    parser.add_argument("--step", metavar="KEY", help="the step it is about")
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    answer = Host().work.call("log_append", run=args.run, body=args.text, kind=args.kind, step=args.step, why=args.why)
    if args.json:
        printing.print_json(answer)
    return 0
