"""List sessions: their state, what they are doing, who is attached."""

from __future__ import annotations

import time

from ...client._sync.host import Host
from ..ui import arguments, printing, session_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_STATE_STYLE = {"live": "green", "lost": "red", "exited": "dim", "reaped": "yellow", "frozen": "blue"}
_ACTIVITY_STYLE = {
    "waiting_for_input": "yellow",
    "waiting_for_secret": "yellow",
    "menu": "yellow",
    "unknown": "red",
    "exited": "dim",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help="also ended sessions")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    sessions = Host().call("ls", all=args.all)
    if args.json:
        printing.print_json(sessions)
        return 0
    if not sessions:
        printing.note("no sessions; start one: hold run")
        return 0
    show(sessions, time.time())
    return 0


def show(sessions: list[dict[str, Any]], now: float) -> None:
    """Print the table of sessions; `top` uses it too."""
    rows, styles = [], []
    for s in sessions:
        kind = s["activity"]["kind"]
        ports = ",".join(str(p["port"]) for p in s["ports"]) or "-"
        rows.append(
            (
                s["name"],
                state(s),
                doing(s),
                ports,
                s["attached_count"] or "-",
                printing.age(s["created_at"], now),
                " ".join(s["command"])[:60],
            )
        )
        styles.append(("bold", _STATE_STYLE.get(s["state"], ""), _ACTIVITY_STYLE.get(kind, ""), "cyan", "", "dim", ""))
    printing.table(("NAME", "STATE", "ACTIVITY", "PORTS", "ATTACHED", "AGE", "COMMAND"), rows, styles)


def state(s: dict[str, Any]) -> str:
    """The state, with the exit code or signal."""
    ended = s["exit"]
    if s["state"] == "live" or not ended:
        return str(s["state"])
    if not ended["known"]:
        return f"{s['state']} (unknown)"
    return f"{s['state']} ({ended['signal'] or ended['code']})"


def doing(s: dict[str, Any]) -> str:
    words = session_text.doing(s["activity"])
    if s.get("reap_at"):
        words += ", idle: ends soon"
    if s.get("restart_at"):
        words += ", restarting"
    return words
