"""`python -m bench [NAME…] [--quick] [--write]`: measure, print, and keep what a full run found in docs/."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace

from . import (
    attach,
    checkpoints,
    console,
    durable,
    echo,
    exec_true,
    flood,
    idle,
    listing,
    many,
    mcp,
    page_echo,
    report,
    sealed,
    stamps,
    start,
    tasks,
)
from .result import Result

# In the order of the report.
MEASUREMENTS: dict[str, Callable[[bool], list[Result]]] = {
    module.KEY: module.measure
    for module in (
        flood,
        echo,
        page_echo,
        stamps,
        exec_true,
        start,
        attach,
        listing,
        idle,
        many,
        durable,
        checkpoints,
        tasks,
        mcp,
        console,
        sealed,
    )
}
_PEERS = ("tmux", "dtach", "strace")


def _warn_if_busy() -> None:
    """A busy machine shares its processors out by process, which flatters whoever has more of them."""
    load = os.getloadavg()[0]
    if load > 0.5 * (os.cpu_count() or 1):
        print(f"bench: the machine is busy (load {load:.1f}): ratios are rough", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which: " + ", ".join(MEASUREMENTS))
    parser.add_argument("--quick", action="store_true", help="few rounds and small sizes: to try it, not to quote")
    parser.add_argument("--write", action="store_true", help="keep the results of a part of the measurements too")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"no measurement {unknown[0]!r}; there are {', '.join(MEASUREMENTS)}")
    if args.quick and args.write:
        parser.error("--quick is for trying it out; what is kept comes from a full run")
    missing = [program for program in _PEERS if shutil.which(program) is None]
    if missing:
        parser.error(f"not installed: {', '.join(missing)} (scripts/setup bench installs them)")
    names = args.names or list(MEASUREMENTS)
    _warn_if_busy()
    results: list[Result] = []
    for name in names:
        print(f"measuring {name} …", file=sys.stderr, flush=True)
        load = os.getloadavg()[0]
        for result in MEASUREMENTS[name](args.quick):
            # Kept with the numbers: a reader must be able to tell a quiet machine's from a busy one's.
            noted = replace(result, notes=(*result.notes, f"load average when it began: {load:.1f}"))
            report.show(noted)
            results.append(noted)
    report.summary(results)
    if args.write or not (args.names or args.quick):
        report.keep(results)
    # A missed target is a finding, not a failure of the run.
    return 0


if __name__ == "__main__":
    sys.exit(main())
