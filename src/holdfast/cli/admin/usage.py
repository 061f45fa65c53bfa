"""Show disk usage of sessions' output, work and journal.

  hold usage
  hold usage --json      with each session, the largest first

hold prune frees space; hold doctor checks whether there is enough.
"""

from __future__ import annotations

import os

from ...client._sync.host import Host
from ...client.admin.doctor.home import usage as bytes_below
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]

_SHOWN = 5  # sessions shown; --json has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    host = Host()
    found = _look(host)
    if args.json:
        printing.print_json(found)
        return 0
    parts = found["parts"]
    rows: list[tuple[object, ...]] = [(name, printing.size(size)) for name, size in parts.items()]
    rows += [(f"session {s['name']}", printing.size(s["bytes"])) for s in found["sessions"][:_SHOWN]]
    rows += [(f"work: {name}", printing.size(size)) for name, size in found["work"]["bytes"].items()]
    rows += [(f"work: {name} rows", n) for name, n in found["work"]["rows"].items() if n]
    rows.append(("free on that disk", printing.size(found["free_bytes"])))
    printing.table(("PART", "SIZE"), rows)
    return 0


def _look(host: Host) -> Json:
    home = host.home
    sessions = []
    for status in host.call("ls", all=True):
        size = bytes_below(home.session(status["id"]).path)
        sessions.append({"session": status["id"], "name": status["name"], "state": status["state"], "bytes": size})
    sessions.sort(key=lambda s: (-s["bytes"], s["session"]))
    parts = {
        "sessions": bytes_below(home.sessions),
        "work": sum(_size(home.work_db + end) for end in ("", "-wal", "-shm")),
        "journal": sum(_size(home.ledger + end) for end in ("", "-wal", "-shm")),
        "all": bytes_below(home.path),
    }
    disk = os.statvfs(home.path)
    return {
        "home": home.path,
        "parts": parts,
        "sessions": sessions,
        "work": host.work.call("work_usage"),
        "free_bytes": disk.f_bavail * disk.f_frsize,
    }


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0
