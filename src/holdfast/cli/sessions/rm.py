"""Remove ended sessions and their output.

hold rm build
hold rm -f web                 stop it first if it runs
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
    parser.add_argument("-f", "--force", action="store_true", help="stop it first if it runs")
    arguments.json_flag(parser)
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    def act(host: Host, session: str) -> dict[str, Any]:
        wanted = session
        if args.force:
            wanted = host.call("stop", session=session, why=args.why)["id"]
        answer: dict[str, Any] = host.call("rm", session=wanted, why=args.why)
        return answer

    return each(args.session, act, _tell, as_json=args.json)


def _tell(done: dict[str, Any]) -> None:
    say(f"{done['name']} ({done['removed']}) removed", done["name"], done["removed"])
