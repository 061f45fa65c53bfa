"""`hold work run`: replaces this process with the task runner."""

from __future__ import annotations

import os
import sys

from ...model.errors import HoldfastError
from ...model.limits import PARALLEL_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="P", help="run: tasks of this project (default: this folder's)")
    parser.add_argument("--once", action="store_true", help="run: exit when no task is left that it can do")
    parser.add_argument(
        "--parallel", metavar="N", type=int, default=1, help="run: number of tasks in parallel (default: %(default)s)"
    )
    parser.add_argument("--lease", metavar="DURATION", help="run: time after which a dead runner is replaced")
    parser.add_argument("--name", metavar="NAME", help="run: the name shown as a task's holder")
    parser.add_argument("--as", dest="acts_as", metavar="OPERATOR", help="run: the operator that backends act as")


def become(args: argparse.Namespace) -> int:
    import json

    from ...model.durations import duration_s

    lease = duration_s(args.lease) if args.lease else None
    if args.lease and (not lease or lease <= 0):
        raise HoldfastError("usage", "--lease must be greater than 0", "as in --lease 30s")
    if not 1 <= args.parallel <= PARALLEL_MAX:
        raise HoldfastError("usage", f"--parallel must be from 1 to {PARALLEL_MAX}", "as in --parallel 2")
    options = {
        "project": args.project,
        "once": args.once,
        "parallel": args.parallel,
        "lease": lease,
        "name": args.name,
        "acts_as": args.acts_as,
        "json": args.json,
    }
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.worker.runner", json.dumps(options)])
