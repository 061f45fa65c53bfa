"""Log browsers in to the console, which hold up --web serves, or log them out.

hold web link            prints a login link for one browser; it works once, within ten minutes
hold web link --qr       also as a QR code, for a phone's camera
hold web link --for ANNA for the browser of another person, with that person's grants
hold web logout          logs every browser out, and revokes unused links
hold web openapi         prints the API description (OpenAPI 3.1); docs/api.md explains it
"""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit

from ...model import web_address
from ...model.errors import HoldfastError
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ...client._sync.host import Host

_ALONE = (
    "this address is reachable from this machine only; for another device use a tunnel (ssh -L), or an address that it"
    " can reach: hold up --web ADDRESS:PORT, or hold up --web PORT --web-url https://NAME behind a proxy"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("link", "logout", "openapi"))
    parser.add_argument("--qr", action="store_true", help="link: also as a QR code")
    parser.add_argument("--for", metavar="PERSON", dest="whom", help="link: for this human operator (default: you)")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.verb != "link" and (args.qr or args.whom is not None):
        hint = "to log one person out: hold operator revoke"
        raise HoldfastError("usage", "--qr and --for need hold web link", hint)  # a logout is for all browsers
    if args.verb == "openapi":
        sys.stdout.flush()
        # A surface is a process of its own. -P: a folder may have a json.py of its own.
        os.execv(sys.executable, [sys.executable, "-P", "-m", "holdfast.console.http.openapi"])
    from ...client._sync.host import Host

    host = Host()
    if args.verb == "logout":
        ended = host.call("login_end", why=args.why)
        if args.json:
            printing.print_json(ended)
        else:
            printing.note(f"{ended['ended']} logged out")
        return 0
    return _link(args, host)


def _link(args: argparse.Namespace, host: Host) -> int:
    from ...client.admin.web_process import login_link

    served = host.call("ping")["host"]["web"]
    if served is None:
        raise HoldfastError("not_found", "the console is not served", "serve it: hold up --web 8787")
    link = login_link(host, served["public"] or served["url"], args.why, args.whom)
    if args.json:
        printing.print_json(link)
        return 0
    if args.qr:
        from . import qr_code

        print("\n".join(qr_code.lines(link["link"], coloured=sys.stdout.isatty())), flush=True)
        if web_address.is_loopback(urlsplit(link["url"]).hostname or ""):
            printing.note(_ALONE)
    printing.note(
        "it works once, within ten minutes" + (f"; for {printing.safe(link['operator'])}" if args.whom else "")
    )
    print(link["link"])
    return 0
