"""Wait for a condition of a session: exit 0 when it is true, 124 on timeout, 1 if the session ends first.

--for answer=ASK waits for a person: exit 0 with an answer or an approval, 4 if denied, 124 on timeout.

  hold wait web --for port=3000 --timeout 30
  hold wait build --for exit
  hold wait dev --for 'text=ready in \\d+ ms' --from 0
  hold wait dev --for input            the program waits for input
  hold wait --for answer=ask_7x2m      an inbox item is answered

--json has the offset for the next call: hold wait … --from OFFSET.
"""

from __future__ import annotations

from ...client._sync.host import Host, Session
from ...model.errors import HoldfastError
from ..operators.ask import code_of
from ..ui import arguments, printing
from ..ui.each_session import seconds
from ..ui.session_text import ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser, nargs="?")
    parser.add_argument(
        "--for",
        dest="condition",
        required=True,
        metavar="CONDITION",
        help="exit, done=EXEC_ID, input, quiet[=S], port=N, text=REGEX or answer=ASK",
    )
    parser.add_argument("--from", dest="start", type=int, metavar="OFFSET", help="search for text from this offset on")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="give up after this time: 30, 5m")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if args.start is not None and args.start < 0:
        raise HoldfastError("usage", f"offset {args.start} is negative", "offsets begin at 0")
    kind, _, value = args.condition.partition("=")
    if kind == "answer":
        return _answered(args, value)
    if not args.session:
        raise HoldfastError("usage", f"--for {kind[:40]} needs a SESSION", "hold wait SESSION --for …")
    answer = Session(Host(), args.session, args.session).wait_for(args.condition, args.start, args.timeout)
    if args.json:
        printing.print_json(answer)
    elif answer["event"] == kind:
        print(printing.safe(f"{args.session}: {tell(answer)}"))
    else:
        printing.note(printing.safe(f"hold: {args.session}: {missed(answer, args.condition)}"))
    if answer["event"] == kind:
        return 0
    return 124 if answer["event"] == "timeout" else 1


def _answered(args: argparse.Namespace, ask: str) -> int:
    if not ask:
        raise HoldfastError("usage", "answer needs an item's id", "--for answer=ASK; hold inbox lists them")
    answer = Host().wait_raw(ask, args.timeout)
    item = answer["detail"]
    if args.json:
        printing.print_json(answer)
    elif item["state"] == "answered":
        print(printing.safe(f"{item['id']}: {item['answer'] or 'approved'}"))
    else:
        printing.note(printing.safe(f"hold: {item['id']} is {item['state']}"))
    return code_of(item, args.timeout or 0.0)


def tell(answer: dict[str, Any]) -> str:
    """The event, as text."""
    event, detail = answer["event"], answer["detail"]
    if event == "exit":
        return ending(detail["exit"])
    if event == "input":
        prompt = f" at {detail['prompt']!r}" if detail.get("prompt") else ""
        return f"{str(detail['kind']).replace('_', ' ')}{prompt}"
    if event == "port":
        return f"port {detail['port']} is served by pid {detail['pid']}"
    if event == "text":
        return f"{detail['match']!r} at offset {detail['start']}"
    if event == "quiet":
        return f"no output for {detail['seconds']:g} s"
    code = detail.get("exit_code")
    return f"{detail['exec_id']} {detail['state'].replace('_', ' ')}" + ("" if code is None else f", exit code {code}")


def missed(answer: dict[str, Any], condition: str) -> str:
    if answer["event"] == "timeout":
        return f"timed out before {condition}; continue with --from {answer['offset']}"
    return f"it ended before {condition} ({ending(answer['detail'].get('exit'))})"
