"""Manage who may act on this host, and their grants: enrol, list, grant, revoke.

  hold operator add bot --kind agent                      an agent, with full rights in sessions it starts itself
  hold operator add ci --kind service --grant view,exec --session 'build-*' --ttl 8h
  hold operator grant bot --grant view,type --session web --ttl 1h --why "finish the migration"
  hold operator revoke bot                                or one of its grants: hold operator revoke grt_…
  hold operator ls
  hold operator whoami

Verbs: view, start, request_control, type, signal, resize, exec, stop, work; for humans only: approve, delegate, enrol.
--session takes a name, an id or a pattern; @own means the operator's own sessions. A grant is never wider than the
rights of the operator who gives it. HOLDFAST_OPERATOR=bot makes a command act as bot, if it has bot's key.
"""

from __future__ import annotations

import sys
import time

from ...client._sync.host import Host
from ...model.durations import duration_s
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from ..ui.each_session import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("add", "ls", "grant", "revoke", "whoami"))
    parser.add_argument("operator", nargs="?", metavar="OPERATOR", help="a name or an id; revoke: also a grant's id")
    parser.add_argument("--kind", choices=("human", "agent", "service"), help="add: the new operator's kind")
    parser.add_argument("--grant", metavar="VERB,…", help="the rights to give")
    parser.add_argument("--session", metavar="GLOB", action="append", help="the sessions (default with --grant: *)")
    parser.add_argument("--ttl", metavar="DURATION", help="how long the grant is valid: 30m, 8h, 7d")
    parser.add_argument("--depth", metavar="N", type=int, help="how often the grant may be passed on (needs delegate)")
    parser.add_argument("--key", metavar="HEX", help="add: the public key, if the secret key is elsewhere")
    parser.add_argument("-a", "--all", action="store_true", help="ls: also revoked operators")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.action in ("add", "grant", "revoke") and args.operator is None:
        raise HoldfastError("usage", f"hold operator {args.action} needs an operator", "hold operator --help")
    actions = {"add": _add, "ls": _ls, "grant": _grant, "revoke": _revoke, "whoami": _whoami}
    return actions[args.action](Host(), args)


def _verbs(args: argparse.Namespace) -> list[str] | None:
    return None if args.grant is None else [v.strip() for v in args.grant.split(",") if v.strip()]


def _ttl(args: argparse.Namespace) -> float | None:
    return None if args.ttl is None else duration_s(args.ttl)


def _add(host: Host, args: argparse.Namespace) -> int:
    if args.kind is None:
        raise HoldfastError("usage", "--kind is missing", "--kind human, agent or service")
    made = host.add_operator(
        args.operator,
        args.kind,
        verbs=_verbs(args),
        sessions=args.session,
        ttl=_ttl(args),
        depth=args.depth,
        key=args.key,
        why=args.why,
    )
    if args.json:
        printing.print_json(made)
        return 0
    given = "; ".join(_describe(g) for g in made["grants"]) or "nothing yet: hold operator grant"
    say(f"{made['name']} ({made['kind']}) is enrolled as {made['id']} and may: {given}", made["id"], made["name"])
    if sys.stdout.isatty():
        printing.note(f"HOLDFAST_OPERATOR={made['name']} makes a command act as {made['name']}")
    return 0


def _grant(host: Host, args: argparse.Namespace) -> int:
    given = host.grant(
        args.operator, _verbs(args) or [], sessions=args.session, ttl=_ttl(args), depth=args.depth, why=args.why
    )
    if args.json:
        printing.print_json(given)
    else:
        say(f"{args.operator} may {_describe(given)} ({given['id']})", given["id"], args.operator)
    return 0


def _revoke(host: Host, args: argparse.Namespace) -> int:
    done = host.revoke(args.operator, why=args.why)
    if args.json:
        printing.print_json(done)
        return 0
    what = f"{done['grant']} of {done['name']}" if done["grant"] else done["name"]
    say(
        f"{what} is revoked; {done['channels']} connections and {done['requests']} requests closed",
        done["operator"],
        done["grant"] or "-",
        done["channels"],
        done["requests"],
    )
    if done["keepers_unable"]:
        printing.note(f"hold: {done['keepers_unable']} sessions have an older keeper and keep their connections open")
    return 0


def _ls(host: Host, args: argparse.Namespace) -> int:
    found = host.operators(all=args.all)
    if args.json:
        printing.print_json(found)
        return 0
    now = time.time()
    rows = []
    for o in found:
        live = [g for g in o["grants"] if g["state"] == "in force"]
        may = "; ".join(_describe(g) for g in live) or "-"
        since = printing.age(o["enrolled_at"], now)
        rows.append((o["name"], o["kind"], o["id"], since, "revoked" if o["revoked_at"] else may))
    printing.table(("NAME", "KIND", "ID", "SINCE", "MAY"), rows)
    return 0


def _whoami(host: Host, args: argparse.Namespace) -> int:
    me = host.whoami()
    if args.json:
        printing.print_json(me)
        return 0
    rows = [("operator", f"{me['name']} ({me['kind']})"), ("id", me["id"]), ("key", me["key"])]
    if me["session"]:
        rows.append(("inside", f"{me['session_name']} ({me['session']})"))
    if me["bound_by"]:
        rows.append(("bound by", ", ".join(me["bound_by"]) + ", who typed in this session"))
    rows += [("may" if g["state"] == "in force" else g["state"], f"{_describe(g)} ({g['id']})") for g in me["grants"]]
    printing.table(("WHAT", "VALUE"), rows)
    return 0


def _describe(grant: Json) -> str:
    """`view, type on web-* until 12:00`; all rights are one word."""
    from ...model.operators.grants import VERBS

    verbs = "everything" if set(grant["verbs"]) == set(VERBS) else ", ".join(grant["verbs"])
    until = f" until {grant['until']}" if grant["until"] else ""
    return f"{verbs} on {', '.join(grant['sessions'])}{until}"
