"""Print a session's rendered screen as text, as its terminal shows it now.

hold screen editor
hold screen editor --json      with size, cursor and title
"""

from __future__ import annotations

from ...client._sync.host import Host
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

# Cells hold no control characters; filter anyway for a person's terminal.
_CONTROLS = dict.fromkeys((*range(10), *range(11, 32), *range(127, 160)), 0xFFFD)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    screen = Host().call("screen", session=args.session)
    if args.json:
        printing.print_json(screen)
        return 0
    text = screen["text"].translate(_CONTROLS).rstrip()
    if text:
        print(text)
    return 0
