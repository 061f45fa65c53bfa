"""All that somebody with an empty context needs to go on: goal, doubts, what no longer holds, what to do next.

hold resume                       the current project, or all runs under way
hold resume 1.5                   a task; also PROJECT/ID, or a run's id
hold resume 1.5 --max-tokens 500  Markdown for a model, within a budget
hold resume --json                for a program: follow next_action
"""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ...model.limits import BRIEF_TOKENS
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", metavar="TASK", nargs="?", help="a task, or a run's id; else the current project")
    arguments.project(parser)
    parser.add_argument(
        "--max-tokens",
        metavar="N",
        type=int,
        default=BRIEF_TOKENS,
        help=f"as estimated; {BRIEF_TOKENS} unless said otherwise",
    )
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    form = "json" if args.json else "markdown"
    brief = Host().work.resume(args.target, project=args.project, max_tokens=args.max_tokens, form=form)
    text = brief.pop("text")
    if args.json:
        printing.print_json(brief)
    else:
        sys.stdout.write(text)
    return 0
