"""Start a session again with the same command, as its next generation. A live one is stopped first; its output is kept.

hold restart web
"""

from __future__ import annotations

from ..ui.each_session import say, stop_arguments, stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    stop_arguments(parser)


def run(args: argparse.Namespace) -> int:
    return stopping("restart", args, _tell)


def _tell(s: dict[str, Any]) -> None:
    words = f"{s['name']} runs again, generation {s['generation']}, pid {s['pid']}"
    if s["kind"] == "kernel":
        words += "; its memory is empty"
    say(words, s["name"], s["id"], s["generation"], s["pid"])
