"""Record a step's intent before its effect, and its outcome after; settle a step in doubt.

hold step begin RUN copy:batch-2 --effect unsafe --args '["batch-2"]'     prints execute, reuse or in_doubt
hold step end RUN copy:batch-2 --result '{"rows": 812}'
hold step fail RUN copy:batch-2 --error 'disk full'                        --unknown: it may have happened
hold step settle RUN copy:batch-2 --done --evidence 'the rows are there'   or --not-done: it may run again
hold step settle RUN build --from-exec                                     from the host's record of the command
hold step assign RUN copy:batch-2 --owner anna --within 2h                 who settles it, and by when
hold step ls RUN
"""

from __future__ import annotations

from ...client._sync.host import Host
from ...model.errors import HoldfastError
from ...model.work.effects import EFFECTS
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("begin", "end", "fail", "settle", "assign", "ls"))
    parser.add_argument("run", metavar="RUN", help="a run's id, or a prefix of it")
    parser.add_argument("key", metavar="KEY", nargs="?", help="the step's name, unique within the run")
    parser.add_argument(
        "--effect", choices=EFFECTS, default=None, help="what running it twice would do (default: unsafe)"
    )
    parser.add_argument("--args", metavar="JSON", help="begin: its arguments; the same key needs the same arguments")
    parser.add_argument("--action", metavar="TEXT", help="begin: a description, shown to the person who settles it")
    parser.add_argument("--idem-key", metavar="KEY", help="begin: the idempotency key for the target")
    parser.add_argument("--result", metavar="JSON", help="end, settle --done: its result")
    parser.add_argument("--error", metavar="TEXT", help="fail: what went wrong")
    parser.add_argument("--unknown", action="store_true", help="fail: it may have happened anyway")
    parser.add_argument("--done", dest="outcome", action="store_const", const="done", help="settle: it happened")
    parser.add_argument(
        "--not-done", dest="outcome", action="store_const", const="not_done", help="settle: it did not happen"
    )
    parser.add_argument(
        "--failed",
        dest="outcome",
        action="store_const",
        const="failed",
        help="settle: it ran and failed; it may run again",
    )
    parser.add_argument("--from-exec", action="store_true", help="settle: use the record of its hold exec --step")
    parser.add_argument("--evidence", metavar="TEXT", help="settle: how you know")
    parser.add_argument("--owner", metavar="OPERATOR", help="assign: the operator who settles it")
    parser.add_argument("--within", metavar="DURATION", help="assign: the time limit")
    parser.add_argument("--epoch", type=int, help="the lease's epoch, for a worker with a lease")
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    work = Host().work
    if args.verb == "ls":
        steps = work.call("step_ls", run=args.run)
        if args.json:
            printing.print_json(steps)
        else:
            rows = [(s["key"], s["state"], s["effect"], s["tries"], s["action"] or "-") for s in steps]
            printing.table(("KEY", "STATE", "EFFECT", "TRIES", "ACTION"), rows)
        return 0
    if not args.key:
        raise HoldfastError("usage", f"hold step {args.verb} needs the step's KEY", "hold step --help")
    if args.verb == "settle" and args.from_exec:
        answer = {"key": args.key, "outcome": work.settle_exec(args.run, args.key, args.epoch)}
    else:
        answer = work.call(f"step_{args.verb}", run=args.run, key=args.key, **_details(args))
    doubted = args.verb == "begin" and answer["decision"] == "in_doubt"
    if args.json:
        printing.print_json(answer)
    elif args.verb == "begin":
        print(answer["decision"])
        if doubted:
            printing.note(f"already begun, outcome unknown: {settling(args.run, args.key)}")
    return 5 if doubted else 0  # `begin && effect` must not run the effect


def _details(args: argparse.Namespace) -> dict[str, Any]:
    if args.verb == "begin":
        return {
            "effect": args.effect or "unsafe",
            "args": parsed(args.args, "--args"),
            "action": args.action,
            "idem_key": args.idem_key,
            "epoch": args.epoch,
            "why": args.why,
        }
    if args.verb == "end":
        result = parsed(args.result, "--result")
        details = {"result": result, "epoch": args.epoch, "why": args.why, "effect": args.effect}
        return details | ({"args": parsed(args.args, "--args"), "action": args.action} if args.effect == "none" else {})
    if args.verb == "fail":
        return {"error": args.error or args.why or "", "known": not args.unknown, "epoch": args.epoch, "why": args.why}
    if args.verb == "settle":
        if not args.outcome:
            raise HoldfastError(
                "usage", "no outcome given", "give --done, --not-done or --failed, with --evidence TEXT"
            )
        proof = args.evidence or args.why
        result = parsed(args.result, "--result")
        return {"outcome": args.outcome, "result": result, "evidence": proof, "epoch": args.epoch}
    from ...model.durations import duration_s

    return {"owner": args.owner, "within_s": duration_s(args.within) if args.within else None}


def settling(run: str, key: str) -> str:
    """The command that settles a step in doubt."""
    import shlex

    return f"hold step settle {shlex.quote(run)} {shlex.quote(key)} --done|--not-done --evidence TEXT"


def parsed(text: str | None, option: str) -> Any:
    """Parse the JSON value of an option."""
    if text is None:
        return None
    import json

    def no_number(name: str) -> Any:
        raise HoldfastError("usage", f"{option} must be JSON, which has no {name}", "leave it out, or write null")

    try:
        return json.loads(text, parse_constant=no_number)
    except ValueError:
        hint = "put text in quotes: '\"text\"'"
        raise HoldfastError("usage", f"{option} must be JSON (got {text[:60]!r})", hint) from None
    except RecursionError:
        raise HoldfastError("usage", f"{option} is nested too deeply", "pass a flatter value") from None
