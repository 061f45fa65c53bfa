"""The database of the work plane: move it from SQLite to PostgreSQL, checked by counts and hashes.

  hold store migrate postgresql://me@db/work      an empty database; the file stays as it is
  export HOLDFAST_STORE=postgresql://me@db/work   from then on

A password belongs into ~/.pgpass or PGPASSWORD: what stands in a command can be read by others.
"""

from __future__ import annotations

from ..client.sync import Host
from . import arguments, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("migrate",))
    parser.add_argument("url", metavar="URL", help="postgresql://USER@HOST/DATABASE")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from ..client.moving import migrate

    def tell(table: str, rows: int) -> None:
        if not args.json:
            output.note(f"hold: {table}: {rows:,} rows")

    moved = migrate(Host(), args.url, tell)
    if args.json:
        output.print_json(moved)
    else:
        output.table(("TABLE", "ROWS", "SHA256"), [(t["table"], t["rows"], t["sha256"]) for t in moved["tables"]])
        output.note(f"hold: {moved['rows']:,} rows are in {moved['to']}, and the same; now set HOLDFAST_STORE to it."
                    f" {moved['from']} is as it was")  # fmt: skip
    return 0
