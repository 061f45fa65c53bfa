"""Read and write a run's short-term memory: messages for a model's window, and values that expire.

hold memory append RUN 'a message of the user'       --role assistant; or a whole message as --json-message '{…}'
hold memory window RUN --max-tokens 4000             the newest that fit (an estimate), and every system message
hold memory set RUN token '"abc"' --ttl 10m          a JSON value that expires after ten minutes; --ttl 0 removes it
hold memory get RUN token
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
    parser.add_argument("verb", choices=("append", "window", "set", "get"))
    parser.add_argument("run", metavar="RUN", help="a run's id, or a prefix of it")
    parser.add_argument("name", metavar="TEXT|NAME", nargs="?", help="append: the text; set, get: the value's name")
    parser.add_argument("value", metavar="JSON", nargs="?", help="set: the value")
    parser.add_argument(
        "--role", default="user", help="append: the message's role (default: user); system is always in the window"
    )
    parser.add_argument("--json-message", metavar="JSON", help="append: the whole message, instead of TEXT")
    parser.add_argument("--max-tokens", metavar="N", type=int, help="window: its maximum size (default: 32000)")
    parser.add_argument("--ttl", metavar="DURATION", help="set: its lifetime (default: the run's)")
    parser.add_argument("--epoch", type=int, help="the lease's epoch, for a worker with a lease")
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    why = {"why": args.why} if args.verb in ("append", "set") else {}
    answer = Host().work.call(f"memory_{args.verb}", run=args.run, **_details(args), **why)
    if args.json:
        printing.print_json(answer)
    elif args.verb == "window":
        for message in answer["messages"]:
            print(_line(message))
        if answer["omitted"]:
            printing.note(f"hold: {answer['omitted']} older messages do not fit; to see them: hold history {args.run}")
    elif args.verb == "get":
        printing.print_json(answer["value"])
    return 0


def _details(args: argparse.Namespace) -> Json:
    if args.verb == "window":
        return {} if args.max_tokens is None else {"max_tokens": args.max_tokens}
    if args.verb == "append" and args.json_message is not None:
        return {"message": parsed(args.json_message, "--json-message"), "epoch": args.epoch}
    if args.name is None:
        what = "a TEXT" if args.verb == "append" else "a NAME"
        raise HoldfastError("usage", f"hold memory {args.verb} needs {what}", "hold memory --help")
    if args.verb == "append":
        return {"message": {"role": args.role, "content": args.name}, "epoch": args.epoch}
    if args.verb == "get":
        return {"name": args.name}
    from ...model.durations import duration_s

    ttl = duration_s(args.ttl) if args.ttl is not None else None
    return {"name": args.name, "value": parsed(args.value, "the value"), "ttl_s": ttl, "epoch": args.epoch}


def _line(message: Any) -> str:
    """A message as one line of plain text."""
    if isinstance(message, dict) and isinstance(message.get("content"), str):
        return printing.safe(message.get("role", "-")) + "\t" + printing.safe(" ".join(message["content"].split()))
    import json

    return json.dumps(message)
