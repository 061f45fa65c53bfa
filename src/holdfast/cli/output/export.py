"""Export a session's output, with times and sizes, as an asciinema recording.

hold export build --cast build.cast
hold export build --cast - | asciinema play -
"""

from __future__ import annotations

import os
import stat
import sys

from ...client._sync.host import Host
from ...client.terminal_output import cast
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from .recording_pages import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from ...client.terminal_output import Event


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("--cast", required=True, metavar="FILE", help="the file to write (-: stdout)")
    parser.add_argument("--v2", action="store_true", help="write version 2, for players older than asciinema 3")


def run(args: argparse.Namespace) -> int:
    host = Host()
    status = host.call("status", session=args.session)
    lines = cast(_events(host, status), version=2 if args.v2 else 3, title=status["name"], command=_command(status))
    if args.cast == "-":
        sys.stdout.buffer.writelines(line.encode() for line in lines)
        return 0
    try:
        count = _write(args.cast, lines)
    except OSError as e:
        raise HoldfastError("failed", f"cannot write {args.cast}: {e.strerror}", "choose another file") from None
    printing.note(f"{args.cast}: {count} events")
    return 0


def _command(status: dict[str, Any]) -> str:
    import shlex

    return shlex.join(status["command"])


def _events(host: Host, status: dict[str, Any]) -> Iterator[Event]:
    last = 0.0
    for event in events(host, status["id"], lines=status["kind"] == "pipes"):
        last = event[0]
        yield event
    ended = status["exit"]
    if ended and ended["known"] and status["state"] != "live":
        from ..sessions.run import code_of

        yield last, "x", code_of(ended)


def _write(path: str, lines: Iterator[str]) -> int:
    """A regular file is written whole or not at all; a pipe or a device is written directly."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb") as f:
            return _copy(f, lines)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "xb") as f:
            count = _copy(f, lines)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    return count


def _copy(file: Any, lines: Iterator[str]) -> int:
    count = -1  # the header is not an event
    for line in lines:
        file.write(line.encode())
        count += 1
    return count
