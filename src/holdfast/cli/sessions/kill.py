"""Send a signal: KILL and TERM to the whole tree, INT and QUIT to the foreground job, others to the main program.

  hold kill web
  hold kill web -s INT           like Ctrl-C
  hold kill web -s HUP --to main

To end a session in every case, use hold stop.
"""

from __future__ import annotations

from ..ui import arguments
from ..ui.each_session import each, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from ...client._sync.host import Host


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser, nargs="+")
    parser.add_argument("-s", "--signal", default="TERM", metavar="SIGNAL", help="INT, SIGHUP, 9 … (default: TERM)")
    parser.add_argument(
        "--to", choices=("main", "foreground", "tree"), help="the target (default: depends on the signal)"
    )
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    def act(host: Host, session: str) -> dict[str, Any]:
        done = host.call("kill", session=session, signal=args.signal, target=args.to, why=args.why)
        return {**done, "name": session}

    return each(args.session, act, _tell, as_json=args.json)


def _tell(done: dict[str, Any]) -> None:
    if done["signalled"] is None:  # the answer was lost with the host, and the session has ended since
        say(f"{done['signal']} was sent to {done['name']}, which has ended", done["name"], done["signal"], "-")
        return
    whom = f"{done['signalled']} processes" if done["target"] == "tree" else f"the {done['target']} program"
    say(f"{done['signal']} sent to {whom} of {done['name']}", done["name"], done["signal"], done["target"])
