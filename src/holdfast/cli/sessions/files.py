"""List open files of a session's processes, with the offset in each and its locks.

hold files build
hold files build --json
"""

from __future__ import annotations

from ...client._sync.host import Host
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    status = Host().call("status", session=args.session)
    files = status["files"]
    if args.json:
        printing.print_json(files)
        return 0
    if not files:
        printing.note(f"{printing.safe(status['name'])} has no open files ({status['state']})")
        return 0
    names = {p["pid"]: p["name"] for p in status["processes"]}
    rows = [
        (
            f["pid"],
            names.get(f["pid"], "-"),
            f["fd"],
            f["kind"],
            "-" if f["offset"] is None else f["offset"],
            f["lock"] or "-",
            f["path"],
        )
        for f in files
    ]
    styles = [("", "bold", "", "", "", "yellow" if f["lock"] else "", "") for f in files]
    printing.table(("PID", "PROGRAM", "FD", "KIND", "OFFSET", "LOCK", "PATH"), rows, styles)
    if status.get("files_truncated"):
        printing.note(f"hold: only the first {len(files)} files are shown")
    return 0
