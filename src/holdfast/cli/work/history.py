"""Show a run's log: what was thought, done and observed, in order.

hold history RUN
hold history RUN --at 120        up to that entry, with the run's state at that point; nothing is executed
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import not_found
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's id, or a prefix of it")
    parser.add_argument("--at", metavar="SEQ", type=int, help="up to this entry, with the state at that point")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    work = Host().work
    entries: list[dict[str, Any]] = []
    while page := work.call("log_read", run=args.run, after=entries[-1]["seq"] if entries else 0, upto=args.at):
        entries += page
    then = None if args.at is None else work.call("state_at", run=args.run, position=args.at)
    if then is not None and then["at"] < args.at:
        raise not_found(f"the log of {args.run} ends at {then['at']}", "choose an earlier position")
    if args.json:
        printing.print_json(entries if then is None else {**then, "entries": entries})
        return 0
    rows = [(e["seq"], e["at"], e["by"] or "-", e["kind"], e["step"] or "-", _words(e["body"])) for e in entries]
    printing.table(("SEQ", "AT", "BY", "KIND", "STEP", "WHAT"), rows)
    if then is not None:
        import json

        printing.note(f"the state at {then['at']} ({then['hash'][:12]}):")
        print(json.dumps(then["state"], indent=2))
    return 0


def _words(body: Any) -> str:
    """An entry in one line."""
    if isinstance(body, str):
        return " ".join(body.split())
    if isinstance(body, dict):
        return "  ".join(f"{k}: {_words(v)}" for k, v in body.items() if v not in (None, [], ""))
    if isinstance(body, list):
        return ", ".join(map(_words, body))
    return str(body)
