"""The console in a browser, served by hold up --web.

  hold web link            prints a link that logs one browser in; it works once, and for ten minutes
  hold web logout          logs every browser out, and ends links that were not used
  hold web openapi         prints the API's document (OpenAPI 3.1); docs/api.md explains it
"""

from __future__ import annotations

import os
import sys

from ..model.errors import HoldfastError
from . import arguments, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("link", "logout", "openapi"))
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.verb == "openapi":
        sys.stdout.flush()
        # A surface is a process of its own. -P: a folder may have a json.py of its own.
        os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.console.openapi"])
    from ..client.sync import Host

    host = Host()
    if args.verb == "logout":
        ended = host.call("login_end", why=args.why)
        if args.json:
            output.print_json(ended)
        else:
            output.note(f"{ended['ended']} logged out")
        return 0
    from ..client.web import login_link

    served = host.call("ping")["host"]["web"]
    if served is None:
        raise HoldfastError("not_found", "the console is not served", "hold up --web 8787 serves it")
    link = login_link(host, served["url"], args.why)
    if args.json:
        output.print_json(link)
    else:
        output.note("it works once, and for ten minutes")
        print(link["link"])
    return 0
