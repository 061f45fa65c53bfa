"""Restore a home from a backup, into a home without sessions.

  hold restore holdfast.tar.gz
  HOLDFAST_HOME=/tmp/look hold restore holdfast.tar.gz      to inspect it elsewhere
  hold restore holdfast.tar.gz --force                      move the existing home aside first

Sessions that were running when the backup was taken are shown as lost, with their output. None is started, whatever
its restart policy; hold restart SESSION does. While sessions run in the home, --force is refused too.

Commands and stores that come from the backup are off until you confirm them: [notify] in its config.toml, its
backends, a store outside the home. hold restore --confirm shows them and turns them on.
"""

from __future__ import annotations

import os
import sys
import time

from ...client._sync.host import Host
from ...client.admin.restore import restore
from ...model import config_toml
from ...model.errors import HoldfastError
from ...model.limits import PROJECT_FILE_BYTES_MAX
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="the backup (-: stdin)")
    parser.add_argument("--confirm", action="store_true", help="turn on the commands and stores of a restored backup")
    parser.add_argument("--yes", action="store_true", help="with --confirm: do not ask")
    parser.add_argument(
        "--force", action="store_true", help="move an existing home with sessions aside, and stop its host"
    )
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if args.confirm == (args.file is not None):
        raise HoldfastError("usage", "give either a FILE or --confirm", "hold restore FILE, or --confirm")
    if args.confirm:
        return _confirm(args)
    host = Host(autostart=False)
    try:
        about = _restore(args.file, host, force=args.force)
    except OSError as e:
        raise HoldfastError("failed", f"cannot restore {args.file} to {host.home.path}: {e.strerror or e}") from None
    facts = {**about, "home": host.home.path, "from_home": about["home"]}
    if args.json:
        printing.print_json(facts)
        return 0
    print(
        f"{facts['home']}: {facts['sessions']} sessions of {printing.safe(facts['created_at'])}; hold ls -a shows them"
    )
    printing.note("notifications, backends and another store are off until: hold restore --confirm")
    if facts["moved_to"]:
        printing.note(f"the home that was there is now {facts['moved_to']}")
    return 0


def _restore(path: str, host: Host, *, force: bool) -> dict[str, Any]:
    stamp = time.strftime("before-%Y%m%dT%H%M%SZ", time.gmtime())
    if path == "-":
        return restore(sys.stdin.buffer, host, force=force, stamp=stamp)
    with open(path, "rb") as source:
        return restore(source, host, force=force, stamp=stamp)


def _confirm(args: argparse.Namespace) -> int:
    """Show what would run, ask, and turn it on."""
    host = Host()
    shown = _runs(host)
    if not args.json:
        for line in shown or ["nothing to confirm"]:
            print(printing.safe(line))
    if not args.yes:
        if args.json or not sys.stdin.isatty():
            raise HoldfastError("usage", "turn these on?", "hold restore --confirm --yes")
        if input("turn these on? [y/N] ").strip().lower() not in ("y", "yes"):
            return 1
    host.call("restore_confirm")
    if args.json:
        printing.print_json({"confirmed": True, "runs": shown})
    return 0


def _runs(host: Host) -> list[str]:
    """The commands and stores in the restored settings, one line each."""
    import tomllib

    lines = []
    try:
        with open(os.path.join(host.home.path, config_toml.FILE), encoding="utf-8") as file:
            table = tomllib.loads(file.read(PROJECT_FILE_BYTES_MAX))
    except FileNotFoundError:
        table = {}
    except (OSError, ValueError) as e:
        raise HoldfastError("failed", f"cannot read {config_toml.FILE}: {e}", "fix it first") from None
    for name in ("notify", "store", "cache"):
        of = table.get(name)
        lines += [f"[{name}] {k} = {v}" for k, v in of.items()] if isinstance(of, dict) else []
    try:
        found = host.work.call("backend_ls")
    except HoldfastError as e:
        return [*lines, f"backends: not known ({e.message})"]
    return lines + [f"backend {one['name']}: {one['template']}" for one in found if not one["builtin"]]
