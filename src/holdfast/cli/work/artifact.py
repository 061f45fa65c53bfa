"""Store and list files that runs produced: content is stored once, names belong to the run.

hold artifact put RUN report.html [--name NAME] [--from SOURCE]…
hold artifact get RUN report.html [FILE]        to stdout without FILE
hold artifact ls [RUN] · rm RUN NAME · gc
hold artifact orphans                           content without a name, and files that attempts left behind
hold artifact adopt TASK [PATH…]                store such files as artifacts of the run that made them
hold artifact discard TASK [PATH…] [--yes]      remove them
"""

from __future__ import annotations

import os
import sys

from ...client._sync.host import Host
from ...model.errors import HoldfastError, invalid
from ...model.limits import ARTIFACT_BYTES_MAX
from ..ui import arguments, printing
from . import artifact_orphans

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ...client._sync.work import Work


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("put", "get", "ls", "rm", "orphans", "adopt", "discard", "gc"))
    parser.add_argument(
        "run", metavar="RUN|TASK", nargs="?", help="a run's id, or a prefix of it; adopt, discard: a task's id"
    )
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="put: the file (-: stdin); otherwise the artifact's name"
    )
    parser.add_argument("file", metavar="FILE", nargs="*", help="get: the file to write; adopt, discard: more paths")
    parser.add_argument("--name", dest="called", metavar="NAME", help="put: the artifact's name (default: the file's)")
    parser.add_argument(
        "--from", dest="sources", metavar="SOURCE", action="append", default=[], help="put: what it was made from"
    )
    parser.add_argument("--media", metavar="TYPE", help="put: its media type")
    parser.add_argument("--epoch", type=int, help="the lease's epoch, for a worker with a lease")
    parser.add_argument("--yes", action="store_true", help="discard: do not ask")
    arguments.project(parser)
    arguments.why(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    work = Host().work
    if args.verb in ("put", "get", "rm") and not (args.run and args.name):
        raise HoldfastError("usage", f"hold artifact {args.verb} needs RUN and NAME", "hold artifact --help")
    if args.verb == "get":
        return _get(work, args)
    if args.verb in ("orphans", "adopt", "discard"):
        return artifact_orphans.run(args)
    if args.verb == "put":
        answer: Any = work.put_artifact(
            args.run,
            _name(args),
            _content(args.name),
            media=args.media,
            sources=args.sources,
            epoch=args.epoch,
            why=args.why,
        )
    elif args.verb == "rm":
        answer = work.call("artifact_rm", run=args.run, name=args.name, epoch=args.epoch, why=args.why)
    elif args.verb == "ls":
        answer = work.call("artifact_ls", run=args.run)
    else:
        answer = work.call(f"artifact_{args.verb}")
    if args.json:
        printing.print_json(answer)
    elif args.verb == "ls":
        rows = [
            (a["run"], a["name"], printing.size(a["size"]), a["sha256"][:12], a["made_by"], a["at"]) for a in answer
        ]
        printing.table(("RUN", "NAME", "SIZE", "CONTENT", "BY", "AT"), rows)
    elif args.verb == "gc":
        printing.note(f"{answer['contents']} removed, {printing.size(answer['bytes'])}")
    elif args.verb == "rm" and not answer["removed"]:
        raise HoldfastError("not_found", f"no such artifact: {args.name[:80]!r}", f"hold artifact ls {args.run}")
    return 0


def _name(args: argparse.Namespace) -> str:
    if args.called:
        return str(args.called)
    if args.name == "-":
        raise HoldfastError("usage", "stdin needs a name", "--name NAME")
    return os.path.basename(str(args.name))


def _content(path: str) -> bytes:
    if path == "-":
        content = sys.stdin.buffer.read(ARTIFACT_BYTES_MAX + 1)
    else:
        try:
            with open(path, "rb") as file:
                content = file.read(ARTIFACT_BYTES_MAX + 1)
        except OSError as e:
            raise HoldfastError("not_found", f"cannot read {path}: {e.strerror}", "give the path of a file") from None
    if len(content) > ARTIFACT_BYTES_MAX:
        raise invalid(
            f"the file is larger than {ARTIFACT_BYTES_MAX:,} bytes, the limit of an artifact",
            "store it elsewhere, and record where with hold note",
        )
    return content


def _get(work: Work, args: argparse.Namespace) -> int:
    content = work.artifact(args.run, args.name)
    if not args.file:
        printing.write(content)
        return 0
    try:
        with open(args.file[0], "wb") as file:
            file.write(content)
    except OSError as e:
        raise HoldfastError("failed", f"cannot write {args.file[0]}: {e.strerror}", "choose another file") from None
    return 0
