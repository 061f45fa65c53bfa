"""Run the Python jobs of a module: take their runs, keep the leases, take over from a worker that died.

hold worker app:jobs                 the `jobs = holdfast.Jobs()` of app.py
hold worker app:jobs --standby       beside another one: leaves new runs to it, finishes them when it is gone
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
    parser.add_argument("--standby", action="store_true", help="leave new runs to others; take over from the dead")
    parser.add_argument(
        "--lease",
        metavar="DURATION",
        default=f"{RUN_LEASE_S:g}s",
        help="how soon after its death a worker is replaced (%(default)s)",
    )
    parser.add_argument("--name", metavar="NAME", help="what others see as the holder (machine, pid and a number)")
    parser.add_argument("--once", action="store_true", help="end when no run is left to do")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    """Roles are processes of their own: this one becomes it."""
    import json

    from ...model.durations import duration_s

    lease = duration_s(args.lease)
    if not lease or lease <= 0:
        raise HoldfastError("usage", "a lease lasts some time", "--lease 30s")
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
