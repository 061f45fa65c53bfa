"""Leave a note in a run's log, for whoever goes on.

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
    parser.add_argument("run", metavar="RUN", help="a run's id, or the beginning of it")
    parser.add_argument("text", metavar="TEXT")
    parser.add_argument("--kind", choices=LOG_KINDS[4:], default="note", help="what it is (note)")
    parser.add_argument("--step", metavar="KEY", help="the step it is about")
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    answer = Host().work.call("log_append", run=args.run, body=args.text, kind=args.kind, step=args.step, why=args.why)
    if args.json:
        printing.print_json(answer)
    return 0
