"""Verify the journal, or save its signed head to verify against later.

hold journal verify                    check every entry's hash and every signed head; names the first bad entry
hold journal head --json > head.json   keep this on another machine
hold journal verify --head head.json   also detects a journal that was truncated or rewritten since
"""

from __future__ import annotations

import json

from ...client._sync.host import Host
from ...model.errors import invalid
from ..ui import arguments, printing
from ..ui.each_session import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_FILE_BYTES_MAX = 1 << 16  # a head is 300 bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("verify", "head"))
    parser.add_argument("--head", metavar="FILE", help="verify: a head that was saved earlier")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    return _head(args) if args.action == "head" else _verify(args)


def _head(args: argparse.Namespace) -> int:
    head = Host().call("journal_head")
    if args.json:
        printing.print_json(head)
    elif head is None:
        printing.note("the journal is empty")
    else:
        say(f"entry {head['n']}, {head['hash']}, signed {head['at']:.0f}", head["n"], head["hash"], head["signature"])
    return 0


def _verify(args: argparse.Namespace) -> int:
    found = Host().call("journal_verify", head=_read(args.head) if args.head else None)
    if args.json:
        printing.print_json(found)
    elif found["ok"]:
        say(
            f"{found['entries']} entries and {found['heads']} signed heads verified; {found['head']}",
            "ok",
            found["entries"],
            found["head"],
        )
    else:
        say(f"entry {found['bad']}: {found['reason']}", "bad", found["bad"], found["reason"])
    return 0 if found["ok"] else 1


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as f:
            value = json.loads(f.read(_FILE_BYTES_MAX))
    except OSError as e:
        raise invalid(f"cannot read {path}: {e.strerror}", "make one: hold journal head --json > FILE") from None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise invalid(f"{path} is not a journal's head", "make one: hold journal head --json > FILE")
    return value
