"""Show or set a project's policy: retries, backends, verification profiles. Every version is kept.

hold policy show [--version N]
hold policy set policy.toml --why 'two backends now'          TOML or JSON (-: stdin)
hold policy set --set retry.attempts_max=5 --set 'backends=["claude", "codex"]'    change the current one
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from .step import parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("set", "show"))
    parser.add_argument("file", metavar="FILE", nargs="?", help="set: the whole policy")
    parser.add_argument("--set", metavar="NAME=JSON", action="append", default=[], help="set: one rule")
    parser.add_argument("--version", metavar="N", type=int, help="show: this version; 0 is the built-in policy")
    arguments.project(parser)
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    tasks = Host().work.tasks
    if args.verb == "show":
        found = tasks.policy(version=args.version, project=args.project)
    else:
        found = tasks.set_policy(_wanted(args, tasks), project=args.project, why=args.why)
    if args.json:
        printing.print_json(found)
        return 0
    if args.verb == "set":
        print(found["version"])
        return 0
    import json

    by = next((v for v in found["versions"] if v["version"] == found["version"]), None)
    said = "" if by is None else f", {by['at']} by {by['by']}" + (f": {by['why']}" if by["why"] else "")
    printing.note(printing.safe(f"{found['project']}: version {found['version']} of {found['current']}{said}"))
    print(json.dumps(found["policy"], indent=2))
    return 0


def _wanted(args: argparse.Namespace, tasks: Any) -> Json:
    if not args.file and not args.set:
        raise HoldfastError("usage", "hold policy set needs a FILE or --set NAME=JSON", "hold policy --help")
    if args.file:
        from ...model.work.task_contract import parse
        from .task import _text

        policy = parse(_text(args.file), args.file)
    else:
        policy = dict(tasks.policy(project=args.project)["policy"])
    for word in args.set:
        name, found, value = word.partition("=")
        *path, last = name.split(".")
        if not found or not last or not all(path):
            raise HoldfastError("usage", f"--set must be NAME=JSON (got {word[:60]!r})", "--set retry.attempts_max=5")
        table = policy
        for part in path:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise HoldfastError("usage", f"{part!r} is not a table of rules", "hold policy show")
        table[last] = parsed(value, f"--set {name}")
    return policy
