"""Start a session with this environment and attach to it; -d leaves it in the background.

hold run                          your shell
hold run -n web -d -- npm run dev
hold run --kernel python3 -n calc  a Jupyter kernel; then: hold exec calc 'x = 1'
hold run --pipes -- make          separate stdout and stderr, byte for byte
make-sql | hold run -- psql       without a terminal, stdin is passed on; if input is refused, this command ends
                                  with exit 5 (4, 2), and the session keeps running
"""

from __future__ import annotations

import os
import sys

from ...client._sync.host import Host, Session, isolation, start_request
from ...model.errors import HoldfastError, invalid
from ...model.sessions.holdfast_toml import parse_bytes, parse_size
from ..terminal.detach_keys import DEFAULT, parse
from ..terminal.raw_terminal import window_size
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "hold run [OPTION…] [--] [CMD ARG…]"
    parser.add_argument("-n", "--name", help="the session's name (default: the program's name)")
    parser.add_argument("-d", "--detach", action="store_true", help="start in the background")
    parser.add_argument("--cwd", metavar="DIR", help="folder to start in (default: here)")
    parser.add_argument(
        "-e", "--env", metavar="K=V", action="append", default=[], help="add an environment variable (repeatable)"
    )
    parser.add_argument("--pipes", action="store_true", help="use pipes instead of a terminal")
    parser.add_argument("--size", metavar="COLSxROWS", help="terminal size (default: this terminal's, or 80x24)")
    parser.add_argument("--as", dest="acts_as", metavar="OPERATOR", help="the operator the session acts as")
    parser.add_argument(
        "--isolate",
        action="store_true",
        help="allow access only to system files, its folder and its own session (bubblewrap)",
    )
    parser.add_argument("--read", metavar="PATH", action="append", default=[], help="isolate, with read access to PATH")
    parser.add_argument(
        "--write", metavar="PATH", action="append", default=[], help="isolate, with write access to PATH"
    )
    parser.add_argument("--no-network", action="store_true", help="isolate, without network access")
    parser.add_argument(
        "--restart", default="never", metavar="POLICY", help="never, on-failure or always (default: never)"
    )
    parser.add_argument("--idle-ttl", metavar="DURATION", help="end the session after this idle time: 30m, 2h")
    parser.add_argument("--kernel", metavar="SPEC", help="run a Jupyter kernel instead of a program")
    parser.add_argument(
        "--limit",
        metavar="pids=N|memory=SIZE|log=SIZE",
        action="append",
        default=[],
        help="set a limit; pids and memory need cgroups",
    )
    parser.add_argument(
        "--detach-keys", default=DEFAULT, metavar="KEYS", help=f"the keys that detach (default: {DEFAULT})"
    )
    parser.add_argument("cmd", nargs="*", metavar="CMD", help="the program and its arguments (default: your shell)")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    command = [*args.cmd, *(args.command_words or [])]
    keys = parse(args.detach_keys)
    limits = parse_limits(args.limit)
    interactive = bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()) and not args.detach and not args.json
    size = parse_size(args.size) if args.size else window_size(1) if interactive else None
    request = start_request(
        command or None,
        name=args.name,
        cwd=args.cwd,
        env=parse_env(args.env),
        pipes=args.pipes,
        size=size,
        restart=args.restart,
        idle_ttl=args.idle_ttl,
        acts_as=args.acts_as,
        why=args.why,
        pids_max=limits.get("pids"),
        memory_max=limits.get("memory"),
        log_max=limits.get("log"),
        isolate=isolation(args.isolate, args.read, args.write, not args.no_network),
        kernel=args.kernel,
    )
    if interactive and os.environ.get("HOLDFAST_SESSION"):
        raise HoldfastError(
            "conflict",
            "this terminal is already inside a session",
            "start it detached (-d), or detach first (Ctrl-\\ d)",
        )
    host = Host()
    made = host.call("run", brief=not (args.json or args.detach or args.kernel), **request)
    unenforced = [name for name in made.get("unenforced") or [] if name in limits]
    if unenforced:
        printing.note(f"hold: this machine does not enforce --limit {' or '.join(unenforced)}; see hold doctor")
    if args.json:
        printing.print_json(made)
        return 0
    if args.kernel and not interactive and not args.detach:  # no input ends it: there is nothing to pass through
        printing.note(f"hold: run code in it with hold exec {made['name']} 'CODE'")
        args.detach = True
    if args.detach:
        print(f"{made['id']}\t{made['name']}" if not sys.stdout.isatty() else _started(made))
        return 0
    return _attach(host, made, keys) if interactive and not args.pipes else _stream(host, made)


def _started(made: dict[str, Any]) -> str:
    return (
        f"{printing.paint(made['name'], 'bold')} runs as {made['id']} (pid {made['pid']}); hold attach {made['name']}"
    )


def _attach(host: Host, made: dict[str, Any], keys: bytes) -> int:
    from ..terminal.attach import Attachment

    client = Attachment(host, made["id"], read_only=False, take=False, keys=keys, just_started=True)
    printing.note(client.run())
    return code_of(client.exit) if client.exit else 0


def _stream(host: Host, made: dict[str, Any]) -> int:
    """Run without a terminal: pass stdin and output through, and return the program's exit code."""
    from .run_piped import pass_through

    try:
        pass_through(host, made["id"], made["name"])
    except KeyboardInterrupt:
        printing.note(f"hold: {made['name']} keeps running: hold attach {made['name']}, hold stop {made['name']}")
        raise
    waited = Session(host, made["id"], made["name"]).wait_for("exit", None, None)
    return code_of(waited["detail"]["exit"])


def code_of(ended: dict[str, Any] | None) -> int:
    """The exit code that a shell would report."""
    if not ended or not ended.get("known"):
        return 1
    if ended["signal"]:
        from ...model import signals

        return 128 + signals.number(ended["signal"])
    return int(ended["code"])


def parse_env(pairs: list[str]) -> dict[str, str]:
    out = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise invalid(f"{pair[:40]!r} is not NAME=VALUE", "-e NAME=VALUE")
        out[name] = value
    return out


def parse_limits(pairs: list[str]) -> dict[str, int]:
    out = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name not in ("pids", "memory", "log") or not value[:1].isdigit():
            raise invalid(f"{pair[:40]!r} is not a limit", "pids=500, memory=512M or log=64M")
        out[name] = parse_bytes(value)
    return out
