"""Print everything needed to continue a task, a run or a project: goal, doubts, drifted claims, the next action.

hold resume                       the current project, or all active runs
hold resume 1.5                   a task; also PROJECT/ID, or a run's id
hold resume 1.5 --max-tokens 500  Markdown for a model, within a token budget
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
    parser.add_argument(
        "target", metavar="TASK", nargs="?", help="a task, or a run's id (default: the current project)"
    )
    arguments.project(parser)
    parser.add_argument(
        "--max-tokens",
        metavar="N",
        type=int,
        default=BRIEF_TOKENS,
        help=f"maximum size, as estimated (default: {BRIEF_TOKENS})",
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
