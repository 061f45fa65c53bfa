"""Manage a project: its folder, its phases in order, its tasks.

hold project init shop --phase design --phase build --phase release      in this folder
hold project show                                                        its status; --project NAME for another
hold project ls
hold project edit --phase design --phase build --phase test              change the phases; one that has tasks stays
"""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("init", "show", "ls", "edit"))
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="init: its name; show, edit: the project (default: this folder's)"
    )
    parser.add_argument(
        "--phase", metavar="P", dest="phases", action="append", help="init, edit: a phase (repeatable, in order)"
    )
    parser.add_argument("--root", metavar="DIR", help="init, edit: its folder (default: this one)")
    arguments.project(parser)
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    tasks, which = Host().work.tasks, args.project or args.name
    if args.verb == "init":
        if not which:
            raise HoldfastError("usage", "hold project init needs a NAME", "hold project init shop --phase build")
        made = tasks.init(which, args.phases or (), root=args.root, why=args.why)
        return _tell(args, made, f"{made['project_name']}: {', '.join(made['phases'])} in {made['root']}")
    if args.verb == "edit":
        made = tasks.edit_project(which, phases=args.phases, root=args.root, why=args.why)
        return _tell(args, made, f"{made['project_name']}: {', '.join(made['phases'])} in {made['root']}")
    if args.verb == "ls":
        found = tasks.projects()
        if args.json:
            printing.print_json(found)
            return 0
        rows = [
            (p["project_name"], p["active_phase"] or "completed", p["unfinished"], p["tasks"], p["root"]) for p in found
        ]
        printing.table(("PROJECT", "PHASE", "LEFT", "TASKS", "ROOT"), rows)
        return 0
    state = tasks.project(which)
    if args.json:
        printing.print_json(state)
    else:
        _show(state)
    return 0


def _tell(args: argparse.Namespace, made: Json, line: str) -> int:
    if args.json:
        printing.print_json(made)
    else:
        print(printing.safe(line))
    return 0


def _show(state: Json) -> None:
    if sys.stdout.isatty():
        counts = ", ".join(f"{n} {status}" for status, n in state["counts"].items() if n) or "no tasks yet"
        print(printing.safe(f"{state['project_name']} in {state['root']}: {counts}"))
        for label, phases in (
            ("completed", state["completed_phases"]),
            ("active", [state["active_phase"]]),
            ("to come", state["remaining_phases"]),
        ):
            print(f"{label}: {', '.join(p for p in phases if p) or '-'}")
    rows = [(t["task_id"], t["status"], t["phase"], t["backend"] or "-", t["title"]) for t in state["tasks"]]
    printing.table(("TASK", "STATUS", "PHASE", "BACKEND", "TITLE"), rows)
