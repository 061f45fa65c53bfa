"""The MCP server for agents, on stdin and stdout; clients start it by themselves (hold connect).

  hold mcp                       acts as an agent named after its client, enrolled on first use
  hold mcp --name reviewer       as this agent
  hold mcp --wait-max 50s        the longest that one call may take; 4s suits every client

An agent on another machine comes over HTTP (hold up --web) with a token:

  hold mcp token reviewer --ttl 7d       prints one, once; only its hash is kept
  hold mcp token reviewer --end          its tokens are worth nothing from now on
"""

from __future__ import annotations

import os
import sys

from ...model.errors import HoldfastError
from ...model.names import check_operator_name
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("token",), nargs="?", help="a token for HTTP; without: serve on stdio")
    parser.add_argument("agent", metavar="AGENT", nargs="?", help="token: whom it stands for; enrolled if need be")
    parser.add_argument("--name", metavar="AGENT", help="the agent to act as (the client's own name)")
    parser.add_argument("--wait-max", metavar="DURATION", help="the longest one call may take (by client, else 4s)")
    parser.add_argument("--ttl", metavar="DURATION", help="token: how long it is worth something (30d)")
    parser.add_argument("--end", action="store_true", help="token: end all tokens of this agent")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.verb == "token":
        return _token(args)
    return _serve(args)


def _serve(args: argparse.Namespace) -> int:
    """A surface is a process of its own: this one becomes it."""
    import json

    if args.name is not None:
        check_operator_name(args.name)
    options = {"name": args.name, "wait_max": args.wait_max}
    sys.stdout.flush()
    # -P: a folder that an agent works in may have a json.py of its own.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.mcp", json.dumps(options)])


def _token(args: argparse.Namespace) -> int:
    import hashlib

    from ...client._sync.host import Host
    from ...model import ids, web_address
    from ...model.durations import duration_s

    if not args.agent:
        raise HoldfastError("usage", "hold mcp token needs an AGENT", "hold operator ls lists them")
    host = Host()
    if args.end:
        answer = host.call("token_end", operator=args.agent, why=args.why)
        if args.json:
            printing.print_json(answer)
        else:
            printing.note(f"{answer['ended']} of {answer['name']} ended")
        return 0
    check_operator_name(args.agent)
    if not any(args.agent in (o["name"], o["id"]) for o in host.operators(all=True)):
        host.add_operator(args.agent, "agent", why=args.why or "for a token")
    token = ids.new(web_address.TOKEN_PREFIX, 32)  # 160 bits: nobody guesses one
    hash = hashlib.sha256(token.encode()).hexdigest()
    ttl = duration_s(args.ttl) if args.ttl else None
    answer = host.call("token_add", operator=args.agent, hash=hash, ttl_s=ttl, why=args.why)
    if args.json:
        printing.print_json({**answer, "token": token})
    else:
        printing.note("it is shown once; send it as Authorization: Bearer TOKEN")
        print(token)
    return 0
