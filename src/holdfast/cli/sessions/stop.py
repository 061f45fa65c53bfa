"""End a session's whole process tree: TERM, then KILL after the grace time. Its output is kept.

hold stop web
hold stop web db -t 30
"""

from __future__ import annotations

from ..ui.each_session import say, stop_arguments, stopping
from ..ui.session_text import ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    stop_arguments(parser)


def run(args: argparse.Namespace) -> int:
    return stopping("stop", args, _tell)


def _tell(s: dict[str, Any]) -> None:
    say(f"{s['name']} ended: {ending(s['exit'])}", s["name"], s["id"], s["state"])
