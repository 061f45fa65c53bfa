"""Start the host, and the sessions that holdfast.toml describes (found here or in a folder above).

  hold up                        all of them
  hold up web                    this one, and those in its `after`
  hold up --web 8787             also serve the console, on this machine only, from now on (--web off: stop)
  hold up --web 8787 --web-url https://hold.example.org     also reached at this address, through a proxy

In holdfast.toml:

  [session.db]
  command = "exec postgres -D data"     a string is shell source, a list is program and arguments
  wait = "port=5432"                    before sessions with it in `after` start (60 s, or wait_timeout)

  [session.web]
  command = ["npm", "run", "dev"]
  cwd = "frontend"                      relative to the file
  env = { PORT = "3000" }
  after = "db"

Also: size, restart, idle_ttl, pipes, limits = { pids, memory }. Running sessions are left as they are. A daemon
of another build is replaced; its sessions keep running.
"""

from __future__ import annotations

import os
import sys

from ...client._sync.host import Host, Session, start_request
from ...client.admin import replace_host
from ...client.admin.web_process import login_link
from ...client.files import project_file
from ...model import web_address
from ...model.errors import HoldfastError, not_found
from ...model.sessions import holdfast_toml
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="*", help="sessions of holdfast.toml (default: all)")
    parser.add_argument(
        "--web", metavar="[HOST:]PORT", help="serve the console there, and MCP at /mcp; off: stop serving"
    )
    parser.add_argument("--web-url", metavar="URL", help="with --web: another address of this port")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.web not in (None, "off"):
        web_address.parse(args.web)  # before anything is started
    if args.web_url is not None:
        web_address.public(args.web_url)
        if args.web in (None, "off"):
            raise HoldfastError("usage", "--web-url needs --web PORT", "hold up --web 8787 --web-url https://NAME")
    chosen = _chosen(args.name)
    host = Host()
    about = host.call("ping")["host"]
    if other := replace_host.mismatch(about):
        printing.note(other)
    if args.web is not None:
        about["web"] = _serve(args, host)
    live = {s["name"]: s for s in host.call("ls")}
    started, already = [], []
    for n, recipe in enumerate(chosen):
        if recipe.name in live:
            made: dict[str, Any] = live[recipe.name]
            already.append(made)
            _say(args, f"{recipe.name} is already running")
        else:
            made = host.call("run", **start_request(**recipe.request(), why=args.why))
            started.append(made)
            _say(args, f"{recipe.name} started (pid {made['pid']})")
        if recipe.wait and any(recipe.name in later.after for later in chosen[n + 1 :]):
            _wait(args, Session(host, made["id"], recipe.name), recipe)
    if args.json:
        printing.print_json({"host": about, "started": started, "already": already})
    else:
        _next_steps(about, [s["name"] for s in (*started, *already)] or list(live))
    return 0


def _serve(args: argparse.Namespace, host: Host) -> dict[str, Any] | None:
    """Serve the HTTP port: the host remembers it and serves it again after a restart."""
    listen = None if args.web == "off" else args.web
    served: dict[str, Any] | None = host.call("web", listen=listen, url=args.web_url, why=args.why)["web"]
    if served is None:
        _say(args, "HTTP is no longer served")
        return None
    link = login_link(host, served["public"] or served["url"], args.why)
    _say(args, f"the console: {link['link']}")
    _say(args, "the link works once, within ten minutes (another: hold web link); for an agent: hold mcp token AGENT")
    served["link"] = link["link"]
    if not web_address.is_loopback(web_address.parse(args.web)[0]):
        _say(args, "this port is not encrypted: traffic, including tokens, is readable on that network")
    return served


def _chosen(names: list[str]) -> list[holdfast_toml.Recipe]:
    found = project_file.nearest(os.getcwd())
    if found is not None:
        path, text = found
        return holdfast_toml.in_order(holdfast_toml.parse(text, os.path.dirname(path)), names)
    if names:
        raise not_found(
            f"no {holdfast_toml.FILE} in this folder or above", "write one (hold up --help), or use hold run"
        )
    return []


def _wait(args: argparse.Namespace, session: Session, recipe: holdfast_toml.Recipe) -> None:
    _say(args, f"{recipe.name}: waiting for {recipe.wait}")
    answer = session.wait_for(str(recipe.wait), 0 if str(recipe.wait).startswith("text=") else None, recipe.wait_s)
    if answer["event"] == "timeout":
        raise HoldfastError(
            "timeout",
            f"{recipe.name} did not reach {recipe.wait} within {recipe.wait_s:g} s",
            f"hold logs {recipe.name}; then hold up again",
        )
    if answer["event"] != str(recipe.wait).partition("=")[0]:
        raise HoldfastError("failed", f"{recipe.name} ended before {recipe.wait}", f"see hold logs {recipe.name}")


def _say(args: argparse.Namespace, text: str) -> None:
    if not args.json:
        printing.note(printing.safe(text))


def _next_steps(about: dict[str, Any], names: list[str]) -> None:
    if not sys.stdout.isatty():
        print("\t".join(map(str, (about["id"], about["pid"], *names))))
        return
    print(f"host {about['id']} is up (pid {about['pid']}, {len(names)} session{'' if len(names) == 1 else 's'})")
    if names:
        first = printing.safe(names[0])
        print(
            f"\n  hold ls                what is running\n  hold attach {first:<10} attach (detach: Ctrl-\\ then d)"
            f"\n  hold logs -f {first:<9} follow its output"
        )
    else:
        print("\n  hold run               start your shell as a session\n  hold run -n web -d -- npm run dev")
