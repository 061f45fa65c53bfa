"""Type into a session. Free controls are taken for it; where someone else holds them it fails with exit 5.

  hold send dev "make test" --enter
  hold send dev --key C-c
  hold send editor --key Escape --key :wq --enter
  cat big.sql | hold send db --stdin
  hold send deploy --secret                asks without echo; nothing of it is kept

TEXT is sent as it is; --enter presses Return. Order: TEXT, --stdin, each --key, Return.
"""

from __future__ import annotations

import base64
import sys

from ..client.sync import Host
from ..model.errors import HoldfastError, invalid
from . import arguments, output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_PORTION_BYTES = 64 << 10  # one frame to the keeper; stdin of any length passes without being held whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("text", metavar="TEXT", nargs="*", help="what to type (one argument)")
    parser.add_argument("--enter", action="store_true", help="press Return at the end")
    parser.add_argument("--key", metavar="NAME", action="append", default=[], help="Enter, Tab, Up, F5, C-c, M-x … (repeatable)")
    parser.add_argument("--stdin", action="store_true", help="type what comes from stdin, byte for byte")
    parser.add_argument("--secret", action="store_true", help="ask without echo, or with --stdin; keep nothing of it")
    parser.add_argument("--eof", action="store_true", help="end the program's input (Ctrl-D, or close the pipe)")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    words = [*args.text, *(args.command_words or [])]
    if len(words) > 1:
        raise HoldfastError("usage", f"{len(words)} texts to send", 'quote them as one: hold send SESSION "a b"')
    if args.secret and words:
        raise HoldfastError(
            "usage", "a secret is never taken from the command line, where others can read it",
            "leave TEXT out and type it, or pass it with --stdin",
        )  # fmt: skip
    text = words[0] if words else ""
    if not (text or args.enter or args.key or args.stdin or args.secret or args.eof):
        raise HoldfastError("usage", "nothing to send", "give TEXT, --enter, --key or --stdin")
    host = Host()
    sent, answer = 0, None
    parts = _parts(host, args, text)
    pending = next(parts, None)
    if pending is None and not args.eof:
        raise HoldfastError("usage", "nothing to send: stdin is empty", "give TEXT, --enter or --key")
    while pending is not None or answer is None:
        following = next(parts, None)
        data = base64.b64encode(pending or b"").decode()
        answer = host.call(
            "send", session=args.session, data=data, secret=args.secret, why=args.why,
            eof=args.eof and following is None,
        )  # fmt: skip
        sent += answer["sent"]
        pending = following
    if args.json:
        output.print_json({**answer, "sent": sent})
    return 0


def _parts(host: Host, args: argparse.Namespace, text: str) -> Iterator[bytes]:
    """What to type, in portions and in order."""
    tail = _keys(host, args.session, args.key) + (b"\r" if args.enter else b"")
    if args.secret and (sys.stdin.isatty() or not args.stdin):
        yield _asked(args.session) + (tail or b"\r")  # the Return that ended the answer is part of it
        return
    if not args.stdin:
        yield text.encode("utf-8", "surrogateescape") + tail
        return
    before = text.encode("utf-8", "surrogateescape")
    while portion := sys.stdin.buffer.read1(_PORTION_BYTES):
        if before:
            yield before
        before = portion
    if args.secret and args.enter and before.endswith(b"\n"):
        before = before[:-1]  # `echo SECRET |` brings a line end of its own
    if before + tail:
        yield before + tail


def _asked(session: str) -> bytes:
    """The secret, typed by a person at this terminal without echo."""
    import getpass
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)  # no terminal: it would echo
            return getpass.getpass(f"secret for {output.safe(session)}: ").encode("utf-8", "surrogateescape")
    except (getpass.GetPassWarning, EOFError, OSError):
        raise HoldfastError("usage", "there is no terminal to ask at", "pass the secret with --stdin") from None


def _keys(host: Host, session: str, names: list[str]) -> bytes:
    """The bytes of keys; arrows depend on the mode that the program has put its terminal in."""
    if not names:
        return b""
    from ..term.keys import encode

    cursor = host.call("keys", session=session)["app_cursor"]
    try:
        return b"".join(encode(name, app_cursor=cursor) for name in names)
    except ValueError as e:
        raise invalid(str(e), "Enter, Tab, Escape, Up, F5, C-c, M-x …") from None
