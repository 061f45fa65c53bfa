"""`hold artifact orphans|adopt|discard`: content without a name, and files that attempts left behind."""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]


def run(args: argparse.Namespace) -> int:
    from ...client.files import orphans

    host = Host()
    if args.verb == "orphans":
        return _list(args, host)
    if not args.run:
        raise HoldfastError("usage", f"hold artifact {args.verb} needs a TASK", "hold artifact orphans lists them")
    paths = [p for p in (args.name, *args.file) if p]
    found = orphans.picked(host, args.run, paths, args.project)
    if args.verb == "adopt":
        done: list[Json] = [orphans.adopt(host, one) for one in found]
    else:
        _ask(args, found)
        for one in found:
            orphans.discard(host, one)
        done = found
    if args.json:
        printing.print_json(done)
    else:
        word = "kept as artifacts" if args.verb == "adopt" else "removed"
        printing.note(f"{len(done)} {word}")
    return 0


def _list(args: argparse.Namespace, host: Host) -> int:
    from ...client.files import orphans

    found = [*host.work.call("artifact_orphans"), *orphans.orphans(host, args.run, args.project)]
    if args.json:
        printing.print_json(found)
        return 0
    rows = [
        (
            (o["sha256"] or "-")[:12],
            o["kind"],
            printing.size(o["size"]),
            o["at"],
            f"{o['task']} attempt {o['attempt']}: {o['path']}" if o["kind"] == "file" else "-",
        )
        for o in found
    ]
    printing.table(("CONTENT", "KIND", "SIZE", "AT", "FILE"), rows)
    return 0


def _ask(args: argparse.Namespace, found: list[Json]) -> None:
    """List the files to remove, and ask for confirmation."""
    if args.yes or not found:
        return
    for one in found:
        printing.note(f"  {printing.safe(one['path'])}  {printing.size(one['size'])}")
    if not sys.stdin.isatty():
        raise HoldfastError("usage", f"{len(found)} files would be removed", "confirm with --yes")
    where = printing.safe(found[0]["root"])
    print(f"remove {len(found)} files from {where}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise HoldfastError("interrupted", "nothing was removed", "to keep them: hold artifact adopt")
