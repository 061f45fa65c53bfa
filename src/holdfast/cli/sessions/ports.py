"""List listening ports of all sessions, with session and process.

hold ports
hold ports 3000 --json
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "port", metavar="PORT", nargs="?", type=int, help="only this port; exit 1 if no process listens on it"
    )
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if args.port is not None and not 0 < args.port < 65536:
        raise HoldfastError("usage", f"{args.port} is not a port", "give a number from 1 to 65535")
    rows = Host().call("ports", port=args.port)
    missed = 1 if args.port is not None and not rows else 0
    if args.json:
        printing.print_json(rows)
        return missed
    if not rows:
        printing.note(f"no session listens on port {args.port}" if missed else "no session listens")
        return missed
    cells = [(r["port"], r["protocol"], r["address"], r["session_name"], r["pid"], r["session"]) for r in rows]
    styles = [("cyan", "", "", "bold", "", "dim") for _ in rows]
    printing.table(("PORT", "PROTOCOL", "ADDRESS", "SESSION", "PID", "ID"), cells, styles)
    return 0
