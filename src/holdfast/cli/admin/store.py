"""Set the store of this home's work, or move it from SQLite to PostgreSQL, verified.

  hold store migrate postgresql://me@db/work      copy all work into an empty database; the file is kept
  hold store use postgresql://me@db/work          use it from now on (--stdin: its password)
  hold store use sqlite:////data/work.db          another file; HOME/work.db is the default
  hold store use --cache redis://db/0             store short-term memory there (off: in each process)

It is the home's setting: a person changes it outside any session, while no run is leased. hold status shows it.
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ...model.work import store_setting
from ..operators import secret_input
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("migrate", "use"))
    parser.add_argument("url", metavar="URL", nargs="?", help="postgresql://USER@HOST/DATABASE, or sqlite:////FILE")
    parser.add_argument("--cache", metavar="URL", help="with use: redis://HOST/N, or off")
    parser.add_argument("--stdin", action="store_true", help="with use: read the store's password from stdin")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.url is None and (args.verb == "migrate" or args.cache is None):
        raise HoldfastError("usage", f"which store to {args.verb}?", f"hold store {args.verb} URL")
    return _migrate(args) if args.verb == "migrate" else _use(args)


def _use(args: argparse.Namespace) -> int:
    wanted: dict[str, Any] = {}
    if args.url is not None:
        wanted["store"] = store_setting.checked(args.url)
        if args.stdin:
            password = secret_input.from_stdin().decode("utf-8", "surrogateescape").rstrip("\n")
            wanted["store"] = store_setting.joined(wanted["store"], password)
    if args.cache is not None:
        wanted["cache"] = None if args.cache == "off" else args.cache
    used = Host().call("store_use", **wanted, why=args.why)
    shown = {name: used[name] and store_setting.without_password(used[name]) for name in store_setting.VARIABLES}
    if args.json:
        printing.print_json(shown)
    else:
        printing.table(("SETTING", "URL"), [(name, url or "in each process") for name, url in shown.items()])
    return 0


def _migrate(args: argparse.Namespace) -> int:
    moved = Host().call("store_migrate", url=args.url)
    if args.json:
        printing.print_json(moved)
    else:
        printing.table(("TABLE", "ROWS", "SHA256"), [(t["table"], t["rows"], t["sha256"]) for t in moved["tables"]])
        printing.note(
            f"hold: {moved['rows']:,} rows copied to {moved['to']} and verified; to use it: hold store use URL."
            f" {moved['from']} is unchanged"
        )
    return 0
