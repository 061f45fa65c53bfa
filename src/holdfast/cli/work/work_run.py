"""`hold work run`: the runner. It is a process of its own; this one becomes it."""

from __future__ import annotations

import os
import sys

from ...model.errors import HoldfastError
from ...model.limits import PARALLEL_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", metavar="P", help="run: whose tasks (default: the project of this folder)")
    parser.add_argument("--once", action="store_true", help="run: end when nothing is left that it could do")
    parser.add_argument("--parallel", metavar="N", type=int, default=1, help="run: tasks at once (%(default)s)")
    parser.add_argument("--lease", metavar="DURATION", help="run: how soon after its death a runner is replaced")
    parser.add_argument("--name", metavar="NAME", help="run: what others see as the holder of a task")
    parser.add_argument("--as", dest="acts_as", metavar="OPERATOR", help="run: who the backends act as")


def become(args: argparse.Namespace) -> int:
    import json

    from ...model.durations import duration_s

    lease = duration_s(args.lease) if args.lease else None
    if args.lease and (not lease or lease <= 0):
        raise HoldfastError("usage", "a lease lasts some time", "--lease 30s")
    if not 1 <= args.parallel <= PARALLEL_MAX:
        raise HoldfastError("usage", f"a runner works at 1 to {PARALLEL_MAX} tasks at once", "--parallel 2")
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
