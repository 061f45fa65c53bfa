"""Start a session again from the same recipe, as its next generation; a live one is stopped first. Output goes on.

  hold restart web
"""

from __future__ import annotations

from . import arguments
from .several import each, say, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ..client.sync import Host


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser, nargs="+")
    parser.add_argument("-t", "--time", type=seconds, metavar="S", help="grace time before KILL (10 s unless told)")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    def act(host: Host, session: str) -> dict[str, Any]:
        answer: dict[str, Any] = host.call("restart", session=session, grace_s=args.time, why=args.why)
        return answer

    return each(args.session, act, _tell, as_json=args.json)


def _tell(s: dict[str, Any]) -> None:
    words = f"{s['name']} runs again, generation {s['generation']}, pid {s['pid']}"
    if s["kind"] == "kernel":
        words += "; its memory is empty"
    say(words, s["name"], s["id"], s["generation"], s["pid"])
