"""Answer an inbox item: the answer is typed into the waiting session, or sent to the agent that asked.

  hold answer ask_7 main               a question, or a program's prompt
  hold answer ask_7                    prompts for the answer (a secret: without echo)
  pass show db | hold answer ask_7 --stdin
  hold answer ask_8 --approve          a command of an agent, or a request for the controls
  hold answer ask_8 --deny --why "not on a Friday"

A menu takes no answer: attach, or send keys. If the prompt is gone, or the dialog was decided in the terminal, nothing
is typed (exit 5). A secret is never taken from the command line.
"""

from __future__ import annotations

import sys

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ...model.inbox import item as asks
from ..ui import arguments, printing
from ..ui.each_session import say
from . import secret_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ask", metavar="ASK", help="the item's id, or a prefix of it")
    parser.add_argument("text", metavar="TEXT", nargs="?", help="the answer (not for secrets)")
    parser.add_argument("--approve", action="store_true", help="approve the request")
    parser.add_argument("--deny", action="store_true", help="deny the request")
    parser.add_argument("--stdin", action="store_true", help="read the answer from stdin")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    given = [args.text is not None, args.approve, args.deny, args.stdin]
    if sum(given) > 1:
        raise HoldfastError("usage", "more than one answer", "give TEXT, --approve, --deny or --stdin")
    host = Host()
    item = host.call("asked", ask=args.ask, timeout=0)
    if item["kind"] == "menu" and item["state"] == "open" and not sum(given):
        asks.after(item, "answer")  # no prompt for an answer that would be refused
    if item["kind"] == "secret" and args.text is not None:
        raise HoldfastError(
            "usage",
            "a secret is never taken from the command line, which other users can read",
            f"hold answer {args.ask} prompts for it; or pass it with --stdin",
        )
    if item["kind"] == "parked_run":
        raise HoldfastError("usage", f"{item['id']} is not a question: {item['text']}", str(item["detail"]["hint"]))
    if args.approve or args.deny:
        done = host.answer_raw(item["id"], approve=args.approve, why=args.why)
    else:
        done = _given(host, args, item)
    if args.json:
        printing.print_json(done)
    else:
        words = "answered" if done["state"] == "answered" else done["state"]
        say(f"{done['id']}: {words}", done["id"], done["state"])
    return 0


def _given(host: Host, args: argparse.Namespace, item: Json) -> Json:
    """The answer, from the command line, from stdin, or typed at this terminal."""
    if args.text is not None:
        data = args.text.encode("utf-8", "surrogateescape")
    elif args.stdin:
        data = secret_input.from_stdin().removesuffix(b"\n").removesuffix(b"\r")  # `echo ANSWER |` adds a line end
    elif item["kind"] == "secret":
        data = secret_input.ask(item["session_name"] or item["id"])
    else:
        return _asked(host, args, item)
    return host.answer_raw(item["id"], data, why=args.why)


def _asked(host: Host, args: argparse.Namespace, item: Json) -> Json:
    """Show the whole item, and prompt for the answer."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise HoldfastError("usage", "no answer given", "give TEXT, --approve, --deny or --stdin")
    for line in describe(item):
        printing.note(line)
    yes_or_no = item["kind"] in asks.YES_OR_NO
    question = "hand them back? [y/N] " if item["kind"] == "held_controls" else "approve? [y/N] "
    sys.stderr.write(question if yes_or_no else "answer: ")
    sys.stderr.flush()
    typed = sys.stdin.readline()
    if not typed:
        raise HoldfastError("interrupted", "not answered", "it stays in the inbox")
    if yes_or_no:
        return host.answer_raw(item["id"], approve=typed.strip().lower() in ("y", "yes"), why=args.why)
    return host.answer_raw(item["id"], typed.rstrip("\n").encode("utf-8", "surrogateescape"), why=args.why)


def describe(item: Json) -> list[str]:
    """The whole item, for the person who decides. The host already made an approval's text printable."""
    asker, detail = item["asker"], item["detail"]
    who = f"{asker['name']} ({asker['kind']})" if asker else item["session_name"]
    lines = [printing.safe(f"{item['kind'].replace('_', ' ')} from {who}")]
    lines += [printing.safe(f"  session  {item['session_name']}")] if item["session_name"] else []
    for key in ("verb", "cwd", "acts_as", "why"):
        if detail.get(key):
            lines.append(printing.safe(f"  {key:<8} {detail[key]}"))
    for name, value in (detail.get("env") or {}).items():
        lines.append(printing.safe(f"  env      {name}={value}" if value is not None else f"  env      {name} removed"))
    lines += ["  | " + printing.safe(line) for line in item["text"].split("\n")]
    lines += [printing.safe(f"  {n}. {option}") for n, option in enumerate(item["options"], 1)]
    return lines
