"""Run the Python jobs of a module: take their runs, renew the leases, take over from dead workers.

hold worker app:jobs                 the `jobs = holdfast.Jobs()` of app.py
hold worker app:jobs --standby       a second worker: leaves new runs to the first, takes over when it is gone
hold work submit migrate --params '{"table": "users"}' --item 1 --item 2
"""

from __future__ import annotations

import os
import sys

from ...model.errors import HoldfastError
from ...model.limits import RUN_LEASE_S
from ..ui import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("jobs", metavar="MODULE:JOBS", help="a module here or on PYTHONPATH, and the name in it")
    parser.add_argument(
        "--standby", action="store_true", help="leave new runs to other workers; take over from dead ones"
    )
    parser.add_argument(
        "--lease",
        metavar="DURATION",
        default=f"{RUN_LEASE_S:g}s",
        help="time after which a dead worker is replaced (default: %(default)s)",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="the name shown as a run's holder (default: machine, pid and a number)"
    )
    parser.add_argument("--once", action="store_true", help="exit when no run is left to do")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Replace this process with the worker."""
    import json

    from ...model.durations import duration_s

    lease = duration_s(args.lease)
    if not lease or lease <= 0:
        raise HoldfastError("usage", "--lease must be greater than 0", "as in --lease 30s")
    options = {
        "jobs": args.jobs,
        "standby": args.standby,
        "lease": lease,
        "name": args.name,
        "once": args.once,
        "json": args.json,
    }
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.worker", json.dumps(options)])
