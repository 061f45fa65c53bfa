"""`hold task changes ID [--attempt N] [--patch]`: the files that an attempt created, changed and deleted."""

from __future__ import annotations

from ...client._sync.host import Host
from ..ui import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--attempt", metavar="N", type=int, help="changes: this attempt (default: the latest)")
    parser.add_argument("--patch", action="store_true", help="changes: as a patch, for git apply")


def run(args: argparse.Namespace) -> int:
    from ...client.files.orphans import changes_of

    told, patch = changes_of(Host(), args.task, args.attempt, args.project)
    if args.json:
        printing.print_json({**told, "patch": patch.decode("utf-8", "replace")} if args.patch else told)
        return 0
    if args.patch:
        printing.write(patch)
        return 0
    lost = set(told["orphans"])
    rows = [
        (
            kind,
            one["path"],
            printing.size(one["size"]),
            (one["before"] or "-")[:12],
            (one["after"] or "-")[:12],
            "orphan" if kind == "created" and one["path"] in lost else "",
        )
        for kind in ("created", "changed", "deleted")
        for one in told[kind]
    ]
    printing.table(("WHAT", "PATH", "SIZE", "BEFORE", "AFTER", ""), rows)
    for limit in told["limits"]:
        printing.note(f"hold: {limit}")
    if not told["recorded"] and rows:
        printing.note(
            "hold: compared with the files as they are now: the attempt has not ended, or its end was not recorded"
        )
    if lost:
        printing.note(
            f"hold: {len(lost)} files not registered as artifacts: hold artifact adopt|discard {told['task_id']} PATH…"
        )
    return 0
