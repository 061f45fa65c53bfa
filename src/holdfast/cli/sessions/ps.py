"""List the processes of a session, as a tree.

hold ps web
hold ps web --json
"""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    status = Host().call("status", session=args.session)
    processes = status["processes"]
    if args.json:
        printing.print_json(processes)
        return 0
    if not processes:
        printing.note(f"no process of {printing.safe(status['name'])} is left ({status['state']})")
        return 0
    show(processes)
    return 0


def show(processes: list[dict[str, Any]]) -> None:
    """Print the table; on a terminal as a tree."""
    indented = sys.stdout.isatty()
    rows = [
        (
            p["pid"],
            p["ppid"],
            p["state"],
            cpu_time(p["cpu_s"]),
            printing.size(p["rss"]),
            (branch if indented else "") + p["command"],
        )
        for branch, p in tree(processes)
    ]
    styles = [("bold", "dim", "", "", "", "") for _ in rows]
    printing.table(("PID", "PARENT", "STATE", "CPU", "MEMORY", "COMMAND"), rows, styles)


def tree(processes: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Each process with its tree lines; parents first, siblings by pid."""
    pids = {p["pid"] for p in processes}
    below: dict[int, list[dict[str, Any]]] = {}
    for p in sorted(processes, key=lambda p: p["pid"]):
        # A process whose parent is not shown (the keeper) is a root.
        below.setdefault(p["ppid"] if p["ppid"] in pids and p["ppid"] != p["pid"] else 0, []).append(p)
    out = []
    # An explicit stack: a tree may be deeper than Python's recursion.
    stack = [("", "", p) for p in reversed(below.get(0, []))]
    while stack:
        branch, indent, p = stack.pop()
        out.append((branch, p))
        children = below.get(p["pid"], [])
        for n, child in reversed(list(enumerate(children))):
            last = n == len(children) - 1
            stack.append((indent + ("└─ " if last else "├─ "), indent + ("   " if last else "│  "), child))
    return out


def cpu_time(seconds: float) -> str:
    """2.50s, 1m05s, 3h12m."""
    if seconds < 60:
        return f"{seconds:.2f}s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
