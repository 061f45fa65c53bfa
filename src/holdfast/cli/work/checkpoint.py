"""Save a run's state; show, compare and restore checkpoints, or fork a new run from one.

hold checkpoint save RUN --set goal='"move the data"' --set plan='["copy", "check"]' --label 'half way'
hold checkpoint save RUN --state FILE         a JSON object (-: stdin)
hold checkpoint ls RUN
hold checkpoint show RUN 3                    without a number: the latest
hold checkpoint diff RUN 1 3
hold checkpoint restore RUN 1                 its state becomes the run's state; no effect is undone
hold checkpoint fork RUN 1                    start a new run from there
hold checkpoint policy RUN --entries 50       save automatically from the log; 0 turns it off
"""

from __future__ import annotations

import sys

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
    parser.add_argument("verb", choices=("save", "show", "ls", "diff", "restore", "fork", "policy"))
    parser.add_argument("run", metavar="RUN", help="a run's id, or a prefix of it")
    parser.add_argument("seq", metavar="SEQ", nargs="?", type=int, help="a checkpoint's number")
    parser.add_argument(
        "other", metavar="OTHER", nargs="?", type=int, help="diff: the one to compare with (default: the latest)"
    )
    parser.add_argument(
        "--set", metavar="NAME=JSON", action="append", default=[], help="save: set a field of the state"
    )
    parser.add_argument("--state", metavar="FILE", help="save: set fields from a JSON object (-: stdin)")
    parser.add_argument("--replace", action="store_true", help="save: remove the fields that are not given")
    parser.add_argument("--label", metavar="TEXT", help="save, fork: a short description")
    parser.add_argument("--with", dest="other_run", metavar="RUN", help="diff: OTHER is a checkpoint of this run")
    parser.add_argument("--entries", metavar="N", type=int, default=0, help="policy: save every N log entries")
    parser.add_argument("--bytes", metavar="N", type=int, default=0, help="policy: save every N bytes of log")
    parser.add_argument("--epoch", type=int, help="the lease's epoch, for a worker with a lease")
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    if args.verb in ("diff", "restore") and args.seq is None:
        raise HoldfastError("usage", f"hold checkpoint {args.verb} needs a number", f"hold checkpoint ls {args.run}")
    work, details = Host().work, _details(args)
    if args.verb == "save" and "sessions" in details["state"]:
        details["state"]["sessions"] = work.located(details["state"]["sessions"])
    answer = work.call(f"checkpoint_{args.verb}", run=args.run, **details)
    if args.json:
        printing.print_json(answer)
    else:
        _TELL[args.verb](answer)
    return 0


def _details(args: argparse.Namespace) -> Json:
    if args.verb == "save":
        label = args.label or args.why
        return {"state": _state(args), "replace": args.replace, "label": label, "epoch": args.epoch}
    if args.verb == "show":
        return {"seq": args.seq}
    if args.verb == "diff":
        return {"seq": args.seq, "other": args.other, "other_run": args.other_run}
    if args.verb == "restore":
        return {"seq": args.seq, "epoch": args.epoch}
    if args.verb == "fork":
        return {"seq": args.seq, "label": args.label or args.why}
    return {"entries": args.entries, "size": args.bytes} if args.verb == "policy" else {}


def _state(args: argparse.Namespace) -> Json:
    state: Json = {}
    if args.state:
        try:
            if args.state == "-":
                text = sys.stdin.read()
            else:
                with open(args.state, encoding="utf-8") as file:
                    text = file.read()
        except OSError as e:
            raise HoldfastError("not_found", f"cannot read {args.state}: {e.strerror}", "give a JSON file") from None
        except UnicodeDecodeError:
            raise HoldfastError("invalid", f"{args.state} is not UTF-8 text", "give a JSON file") from None
        given = parsed(text, "--state")
        if not isinstance(given, dict):
            raise HoldfastError("usage", "--state must be a JSON object", 'as {"goal": "…"}')
        state.update(given)
    for word in args.set:
        name, found, value = word.partition("=")
        if not found or not name:
            raise HoldfastError("usage", f"--set must be NAME=JSON (got {word[:60]!r})", "--set goal='\"text\"'")
        state[name] = parsed(value, f"--set {name}")
    return state


def _tell_saved(saved: Json) -> None:
    print(saved["seq"])


def _tell_list(found: list[Json]) -> None:
    size = printing.size
    rows = [
        (c["seq"], c["at"], c["kind"], c["log_upto"], size(c["size"]), size(c["stored"]), c["label"] or "-")
        for c in found
    ]
    printing.table(("SEQ", "AT", "KIND", "LOG", "STATE", "STORED", "LABEL"), rows)


def _tell_state(found: Json) -> None:
    import json

    print(json.dumps(found["state"], indent=2, ensure_ascii=True))


def _tell_diff(found: Json) -> None:
    rows = [(c["key"], c["change"], _change(c)) for c in found["changes"]]
    printing.table(("KEY", "CHANGE", "WHAT"), rows)


def _change(change: Json) -> str:
    import json

    shown = {k: v for k, v in change.items() if k not in ("key", "change")}
    text = json.dumps(shown, ensure_ascii=True)
    return text if len(text) <= 200 else text[:200] + "… (--json has all of it)"


def _tell_fork(made: Json) -> None:
    print(made["run"])


def _tell_policy(made: Json) -> None:
    print(f"{made['every_entries']}\t{made['every_bytes']}")


_TELL: dict[str, Any] = {
    "save": _tell_saved,
    "show": _tell_state,
    "ls": _tell_list,
    "diff": _tell_diff,
    "restore": _tell_saved,
    "fork": _tell_fork,
    "policy": _tell_policy,
}
