"""`hold task changes ID [--attempt N] [--patch]`: the files that an attempt created, changed and deleted."""

from __future__ import annotations

from ..client.sync import Host
from . import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--attempt", metavar="N", type=int, help="changes: of this attempt (the latest)")
    parser.add_argument("--patch", action="store_true", help="changes: as a patch, for git apply")


def run(args: argparse.Namespace) -> int:
    from ..client.orphans import changes_of

    told, patch = changes_of(Host(), args.task, args.attempt, args.project)
    if args.json:
        output.print_json({**told, "patch": patch.decode("utf-8", "replace")} if args.patch else told)
        return 0
    if args.patch:
        output.write(patch)
        return 0
    lost = set(told["orphans"])
    rows = [
        (
            kind,
            one["path"],
            output.size(one["size"]),
            (one["before"] or "-")[:12],
            (one["after"] or "-")[:12],
            "orphan" if kind == "created" and one["path"] in lost else "",
        )
        for kind in ("created", "changed", "deleted")
        for one in told[kind]
    ]
    output.table(("WHAT", "PATH", "SIZE", "BEFORE", "AFTER", ""), rows)
    for limit in told["limits"]:
        output.note(f"hold: {limit}")
    if not told["recorded"] and rows:
        output.note("hold: compared with the files as they are now: the attempt has not ended, or nobody saw its end")
    if lost:
        output.note(f"hold: {len(lost)} made and never registered: hold artifact adopt|discard {told['task_id']} PATH…")
    return 0
