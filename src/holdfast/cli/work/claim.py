"""Record facts about this machine, and check now whether they still hold.

hold claim add --task 1.5 --port 3000 --session web      that session listens on the port
hold claim add --run RUN --file dist/app.js              the file keeps its current content
hold claim add --task 1.5 --pid 4242                     exactly this process is alive
hold claim add --task 1.5 --command 'make check'         the command succeeds; each check runs it
hold claim ls [--task ID | --run RUN] · hold claim rm CLAIM
hold claim check [--task ID | --run RUN]                 exit 0 if all hold, 1 if something drifted
"""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ...model.limits import CLAIM_TIMEOUT_S
from ..ui import arguments, printing
from ..ui.each_session import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_STYLE = {"holds": "green", "drifted": "red", "unknown": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("add", "ls", "check", "rm"))
    parser.add_argument("claim", metavar="CLAIM", nargs="?", help="rm: the claim's id, or a prefix of it")
    parser.add_argument("--task", metavar="ID", help="the task that relies on it")
    parser.add_argument("--run", metavar="RUN", help="the run that relies on it")
    arguments.project(parser)
    parser.add_argument("--port", metavar="N", type=int, help="add: a process listens on it")
    parser.add_argument("--file", metavar="FILE", help="add: the file keeps its current content")
    parser.add_argument("--pid", metavar="P", type=int, help="add: this process is alive")
    parser.add_argument("--command", metavar="CMD", help="add: this command succeeds (run by sh, in this folder)")
    parser.add_argument(
        "--session", metavar="SESSION", help="add: with --port: this session listens on it; alone: it is live"
    )
    parser.add_argument(
        "--timeout", metavar="D", type=seconds, default=CLAIM_TIMEOUT_S, help="add: time limit of the command"
    )
    parser.add_argument("--no-commands", action="store_true", help="check: do not run commands")
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    work = Host().work
    whose = {"task": args.task, "run": args.run, "project": args.project}
    if args.verb == "rm":
        if not args.claim:
            raise HoldfastError("usage", "hold claim rm needs a CLAIM", "hold claim ls lists them")
        work.drop_claim(args.claim)
        return 0
    if args.verb == "add":
        made = work.add_claim(
            **whose,
            port=args.port,
            file=args.file,
            pid=args.pid,
            command=args.command,
            session=args.session,
            timeout=args.timeout,
        )
        if args.json:
            printing.print_json(made)
        else:
            print(made["id"])
            if made["state"] == "drifted":
                printing.note(f"recorded, but it does not hold now: {printing.safe(made['said'])}")
        return 0
    found = work.claims(**whose) if args.verb == "ls" else work.check_claims(**whose, commands=not args.no_commands)
    if args.json:
        printing.print_json(found)
    else:
        _table(found)
    return 1 if args.verb == "check" and any(c["state"] == "drifted" for c in found) else 0


def _table(found: list[dict[str, Any]]) -> None:
    rows = [(c["id"], c["state"], c["claim"], c["said"] or "-", c["checked_at"] or "-") for c in found]
    styles = [("dim", _STYLE[c["state"]], "bold", "", "dim") for c in found]
    printing.table(("CLAIM", "STATE", "WHAT", "EVIDENCE", "CHECKED"), rows, styles)
    for claim in found:
        tail = claim["evidence"].get("last_lines")
        if tail and claim["state"] == "drifted" and sys.stdout.isatty():
            printing.note(f"the last lines for {claim['id']}:")
            for line in str(tail).split("\n"):
                printing.note("  " + printing.safe(line))
