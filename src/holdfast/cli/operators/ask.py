"""Ask a person a question: it stays in the inbox until it is answered.

  hold ask "Which branch do I release?" --option main --option develop --wait 10m
  hold ask "The tests need a licence key. Where is it?" --session build

With --wait the answer is printed: exit 0 with an answer, 4 if the answer is no, 124 if none came in time.
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from ..ui.each_session import say, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="the question")
    parser.add_argument("--session", metavar="SESSION", help="the session it is about")
    parser.add_argument(
        "--option", metavar="O", action="append", default=[], help="an answer to choose from (repeatable)"
    )
    parser.add_argument("--wait", type=seconds, metavar="S", help="wait at most this long for the answer: 30, 10m")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    host = Host()
    item = host.ask_raw(args.text, session=args.session, options=args.option, why=args.why)
    if args.wait is not None:
        item = host.asked_raw(item["id"], args.wait)
    if args.json:
        printing.print_json(item)
    elif args.wait is None:
        say(f"asked: {item['id']}; hold wait --for answer={item['id']} prints the answer", item["id"])
    elif item["state"] == "answered":
        print(item["answer"])
    elif item["state"] == "open":
        printing.note(f"hold: no answer within {args.wait:g} s; {item['id']} stays in the inbox")
    else:
        by = (item["answered_by"] or {}).get("name")
        printing.note(f"hold: {item['id']} is {item['state']}" + (f" by {printing.safe(by)}" if by else ""))
    return code_of(item, args.wait)


def code_of(item: dict[str, object], waited: float | None) -> int:
    if waited is None or item["state"] == "answered":
        return 0
    if item["state"] in ("open", "expired"):
        return HoldfastError("timeout", "").exit_status
    return HoldfastError("not_allowed", "").exit_status
