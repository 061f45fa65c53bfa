"""Manage backends: the command lines that do tasks. claude, codex and shell are built in.

hold backend add cheap -- claude -p --model haiku        {contract}, {brief} and {task} are replaced in its arguments
hold backend add tidy -e MODE=strict --timeout 10m -- ./tools/tidy {contract}
hold backend ls
hold backend rm cheap
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("add", "ls", "rm"))
    parser.add_argument("name", metavar="NAME", nargs="?", help="its name in policies and contracts")
    parser.add_argument("command", metavar="CMD", nargs="*", help="add: the program and its arguments, after --")
    parser.add_argument(
        "-e", metavar="K=V", dest="env", action="append", default=[], help="add: an environment variable (repeatable)"
    )
    parser.add_argument(
        "--terminal", action="store_true", help="add: run it on a terminal (default: the brief is its stdin)"
    )
    parser.add_argument("--timeout", metavar="DURATION", help="add: time limit of one attempt (default: 1h)")
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    tasks = Host().work.tasks
    if args.verb == "ls":
        found = tasks.backends()
        if args.json:
            printing.print_json(found)
            return 0
        rows = [(b["name"], "builtin" if b["builtin"] else b["by"], " ".join(b["template"] or ["-"])) for b in found]
        printing.table(("BACKEND", "BY", "COMMAND"), rows)
        return 0
    if not args.name:
        raise HoldfastError("usage", f"hold backend {args.verb} needs a NAME", "hold backend ls lists them")
    if args.verb == "rm":
        made = tasks.remove_backend(args.name, why=args.why)
    else:
        words = args.command_words or args.command
        if not words:
            raise HoldfastError("usage", "hold backend add needs a command", "hold backend add NAME -- CMD ARG…")
        env = dict(_pair(word) for word in args.env)
        timeout = None if args.timeout is None else arguments.seconds(args.timeout)
        made = tasks.add_backend(args.name, words, env=env, timeout_s=timeout, terminal=args.terminal, why=args.why)
    if args.json:
        printing.print_json(made)
    else:
        print(made["name"])
    return 0


def _pair(word: str) -> tuple[str, str]:
    name, found, value = word.partition("=")
    if not found or not name:
        raise HoldfastError("usage", f"-e must be NAME=VALUE (got {word[:60]!r})", "as -e MODE=strict")
    return name, value
