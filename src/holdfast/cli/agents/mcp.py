"""Run the MCP server for agents, on stdin and stdout. Agent programs start it themselves (hold connect).

  hold mcp                       act as an agent named after the client, enrolled on first use
  hold mcp --name reviewer       act as this agent
  hold mcp --wait-max 50s        the longest time of one call; 4s suits every client

An agent on another machine connects over HTTP (hold up --web) with a token:

  hold mcp token reviewer --ttl 7d       print a new token; only its hash is stored
  hold mcp token reviewer --end          revoke all its tokens
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
    parser.add_argument(
        "verb", choices=("token",), nargs="?", help="make or end tokens for HTTP (default: serve on stdio)"
    )
    parser.add_argument("agent", metavar="AGENT", nargs="?", help="token: the agent; enrolled on first use")
    parser.add_argument("--name", metavar="AGENT", help="the agent to act as (default: the client's name)")
    parser.add_argument(
        "--wait-max", metavar="DURATION", help="the longest time of one call (default: by client, else 4s)"
    )
    parser.add_argument("--ttl", metavar="DURATION", help="token lifetime (default: 30d)")
    parser.add_argument("--end", action="store_true", help="token: revoke all tokens of this agent")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.verb == "token":
        return _token(args)
    return _serve(args)


def _serve(args: argparse.Namespace) -> int:
    """Replace this process with the MCP server."""
    import json

    if args.name is not None:
        check_operator_name(args.name)
    options = {"name": args.name, "wait_max": args.wait_max}
    sys.stdout.flush()
    # -P: the folder that an agent works in may contain a json.py.
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
            printing.note(f"{answer['ended']} tokens of {answer['name']} revoked")
        return 0
    check_operator_name(args.agent)
    if not any(args.agent in (o["name"], o["id"]) for o in host.operators(all=True)):
        host.add_operator(args.agent, "agent", why=args.why or "for a token")
    token = ids.new(web_address.TOKEN_PREFIX, 32)  # 160 bits: cannot be guessed
    hash = hashlib.sha256(token.encode()).hexdigest()
    ttl = duration_s(args.ttl) if args.ttl else None
    answer = host.call("token_add", operator=args.agent, hash=hash, ttl_s=ttl, why=args.why)
    if args.json:
        printing.print_json({**answer, "token": token})
    else:
        printing.note("the token is shown only once; send it as Authorization: Bearer TOKEN")
        print(token)
    return 0
