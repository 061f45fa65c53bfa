"""Print a session's stored output, a part of it, or follow it live (-f). Reading removes nothing.

  hold logs build --tail 20
  hold logs web -f --since 10m
  hold logs web --grep 'error|warn'
  hold logs web --raw > web.log        the terminal's exact bytes

On a terminal, colours are kept; in a pipe, the output is plain text, in whole lines. The output of a --pipes session is
unchanged, stdout to stdout and stderr to stderr. What a verification's session records for programs is left out, except
with --raw and --json.
"""

from __future__ import annotations

import time

from ...client._sync.host import Host, Session
from ...model.durations import moment_s
from ...model.errors import HoldfastError
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_TAIL_BYTES_FIRST, _TAIL_BYTES_MAX = 16 << 10, 1 << 20  # read backwards in growing steps: most tails are short


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="follow until the session ends")
    parser.add_argument("--from", dest="start", type=int, metavar="OFFSET", help="begin at this offset")
    parser.add_argument("--tail", type=int, metavar="LINES", help="only the last lines")
    parser.add_argument("--since", metavar="T", help="only newer output: 10m (ago), or 2026-01-31T12:00:00Z")
    parser.add_argument("--grep", metavar="RE", help="only lines that match (RE2 syntax)")
    parser.add_argument("--raw", action="store_true", help="the exact bytes that were written")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    from . import log_formats

    _check(args)
    since = moment_s(args.since, time.time()) if args.since else None
    grep = None
    if args.grep is not None:
        from ...model.patterns import pattern

        grep = pattern(args.grep)
    host = Host()
    about = host.call("offset", session=args.session, since=since)
    session = Session(host, about["session"], about["name"])
    if not about.get("current", True):
        more = "the rest follows when it does" if args.follow else "there may be more"
        printing.note(f"hold: the keeper of {about['name']} does not answer; this is what is on disk, {more}")
    start = _start(session, about, args)
    if args.start is not None and args.start > about["end"]:
        more = "waiting for it" if args.follow else "nothing to print"
        printing.note(f"hold: offset {args.start} is past the end ({about['end']}); {more}")
    last = args.tail if grep is not None else None
    writer = log_formats.choose(
        as_json=args.json,
        raw=args.raw,
        pipes=about["kind"] == "pipes",
        grep=grep,
        tail=last,
        end=about["end"],
        home=host.home,
    )
    chunks = session.output(start, follow=True) if args.follow else session.output(start, end=max(start, about["end"]))
    record = None if args.raw or args.json else about.get("record")
    try:
        for chunk in chunks:
            if record is None or chunk.stream != record:
                writer.chunk(chunk)
    finally:
        writer.close()
    return 0


def _check(args: argparse.Namespace) -> None:
    if args.start is not None and args.start < 0:
        raise HoldfastError("usage", f"offset {args.start} is negative", "offsets begin at 0")
    if args.tail is not None and args.tail < 0:
        raise HoldfastError("usage", f"--tail must be at least 0 (got {args.tail})", "--tail 20")
    if args.start is not None and args.since:
        raise HoldfastError("usage", "--from and --since exclude each other", "give one of them")


def _start(session: Session, about: dict[str, Any], args: argparse.Namespace) -> int:
    """The first offset to print; 0 by default, so that pruned output is reported as gone."""
    start = 0
    if args.start is not None:
        start = args.start
    elif args.since:
        start = about["at"]
    if args.tail is not None and args.grep is None:
        start = max(
            start,
            tail_offset(
                session,
                max(start, about["start"]),
                about["end"],
                args.tail,
                None if args.raw or args.json else about.get("record"),
            ),
        )
    return start


def tail_offset(session: Session, start: int, end: int, lines: int, without: str | None = None) -> int:
    """The offset of the last `lines` lines before `end`; the last may be unfinished. Ignores the stream `without`."""
    if lines == 0:
        return end
    high, step = end, _TAIL_BYTES_FIRST
    while high > start:
        low = max(start, high - step)
        for chunk in reversed(list(session.output(low, end=high))):
            if without is not None and chunk.stream == without:
                end = chunk.offset if chunk.offset + len(chunk.data) == end else end
                continue
            at = len(chunk.data)
            while (at := chunk.data.rfind(b"\n", 0, at)) >= 0:
                if chunk.offset + at + 1 == end:
                    continue  # it ends the last line, it does not begin one
                lines -= 1
                if lines == 0:
                    return chunk.offset + at + 1
        high, step = low, min(step * 2, _TAIL_BYTES_MAX)
    return start
