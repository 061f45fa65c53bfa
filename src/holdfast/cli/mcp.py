"""The MCP server for agents, on stdin and stdout; clients start it by themselves (hold connect).

  hold mcp                       acts as an agent named after its client, enrolled on first use
  hold mcp --name reviewer       as this agent
  hold mcp --wait-max 50s        the longest that one call may take; 4s suits every client
"""

from __future__ import annotations

import os
import sys

from ..model.names import check_operator_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", metavar="AGENT", help="the agent to act as (the client's own name)")
    parser.add_argument("--wait-max", metavar="DURATION", help="the longest that one call may take (by client, else 4s)")


def run(args: argparse.Namespace) -> int:
    """A surface is a process of its own: this one becomes it."""
    import json

    if args.name is not None:
        check_operator_name(args.name)
    options = {"name": args.name, "wait_max": args.wait_max}
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.mcp", json.dumps(options)])
