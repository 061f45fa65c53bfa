"""Show who holds a session's controls and who is attached.

hold who deploy
"""

from __future__ import annotations

import sys
import time

from ...client._sync.host import Host
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    status = Host().call("status", session=args.session)
    controls, attached = status["controls"], status["attached"]
    if args.json:
        printing.print_json(
            {"session": status["id"], "name": status["name"], "controls": controls, "attached": attached}
        )
        return 0
    now = time.time()
    holder = controls["holder"]
    rows = [
        (
            "controls",
            (controls.get("name") or holder) if holder else "-",
            controls["kind"] or "-",
            "-",
            printing.age(controls["since"], now),
            detail(controls),
        )
    ]
    rows += [("attached", a["name"], "-", a["via"], printing.age(a.get("since"), now), a["mode"]) for a in attached]
    printing.table(("WHAT", "WHO", "KIND", "VIA", "FOR", "DETAIL"), rows)
    if holder is None and sys.stdout.isatty():
        printing.note("the controls are free: typing takes them")
    return 0


def detail(controls: dict[str, Any]) -> str:
    """The epoch, the previous holder, and when the hold of an absent operator ends."""
    parts = [f"epoch {controls['epoch']}"]
    if controls.get("from"):
        parts.append(f"from {controls['from']['name']}")
    if controls.get("ends_at"):
        parts.append(f"away, until {controls['ends_at']}")
    return ", ".join(parts)
