"""Type into a session. It takes free controls; if another operator holds them, it fails with exit 5.

  hold send dev "make test" --enter
  hold send dev --key C-c
  hold send editor --key Escape
  hold send editor :wq --enter
  cat big.sql | hold send db --stdin
  hold send deploy --secret                prompts without echo; nothing of it is stored

TEXT is sent unchanged; --enter presses Return (with --pipes: a newline). Order: TEXT, --stdin, each --key, Return.
"""

from __future__ import annotations

import base64
import os
import sys

from ...client._sync.host import Host, Session
from ...model.errors import HoldfastError
from ..operators import secret_input
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

_PORTION_BYTES = 64 << 10  # one frame to the keeper; stdin of any length passes without being held whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("text", metavar="TEXT", nargs="*", help="the text to type (one argument)")
    parser.add_argument("--enter", action="store_true", help="press Return at the end")
    parser.add_argument(
        "--key", metavar="NAME", action="append", default=[], help="Enter, Tab, Up, F5, C-c, M-x … (repeatable)"
    )
    parser.add_argument("--stdin", action="store_true", help="type stdin, byte for byte")
    parser.add_argument(
        "--secret", action="store_true", help="prompt without echo, or read --stdin; nothing of it is stored"
    )
    parser.add_argument("--eof", action="store_true", help="end the program's input (Ctrl-D, or close the pipe)")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if len(args.text) > 1:
        raise HoldfastError(
            "usage", f"{len(args.text)} arguments instead of one TEXT", 'quote them as one: hold send SESSION "a b"'
        )
    if args.secret and args.text:
        raise HoldfastError(
            "usage",
            "a secret is never taken from the command line, which other users can read",
            "leave TEXT out to be prompted, or pass it with --stdin",
        )
    text = args.text[0] if args.text else ""
    if not (text or args.enter or args.key or args.stdin or args.secret or args.eof):
        raise HoldfastError("usage", "nothing to send", "give TEXT, --enter, --key or --stdin")
    host = Host()
    sent, answer = 0, None
    try:
        for data, enter in _parts(host, args, text):
            answer = _type(host, args, data, enter=enter)
            sent += answer["sent"]
        if args.eof:
            answer = _type(host, args, b"", eof=True)
    except HoldfastError as e:
        if not sent:
            raise
        raise HoldfastError(e.code, f"sent {sent} bytes, then failed: {e.message}", e.hint) from None
    if answer is None:
        raise HoldfastError("usage", "nothing to send: stdin is empty", "give TEXT, --enter or --key")
    if args.json:
        printing.print_json({**answer, "sent": sent})
    return 0


def _type(
    host: Host, args: argparse.Namespace, data: bytes, *, enter: bool = False, eof: bool = False
) -> dict[str, Any]:
    payload = base64.b64encode(data).decode()
    return host.call(  # type: ignore[no-any-return]
        "send", session=args.session, data=payload, enter=enter, secret=args.secret, eof=eof, why=args.why
    )


def _parts(host: Host, args: argparse.Namespace, text: str) -> Iterator[tuple[bytes, bool]]:
    """The pieces to type, in order, and whether Return follows; stdin in chunks, all else in one piece, so that no
    other input comes between."""
    head = text.encode("utf-8", "surrogateescape")
    tail, enter = Session(host, args.session, args.session).keys(args.key), args.enter
    if args.secret and (sys.stdin.isatty() or not args.stdin):
        # the Return that ends the answer is part of it
        yield secret_input.ask(args.session) + tail, enter or not tail
    elif args.secret:
        secret = secret_input.from_stdin()
        if enter and secret.endswith(b"\n"):
            secret = secret[:-1]  # `echo SECRET |` adds a line end
        yield secret + tail, enter
    elif args.stdin:
        if head:
            yield head, False
        while portion := os.read(sys.stdin.fileno(), _PORTION_BYTES):
            yield portion, False
        if tail or enter:
            yield tail, enter
    elif head or tail or enter:
        yield head + tail, enter
