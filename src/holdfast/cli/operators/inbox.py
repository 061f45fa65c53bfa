"""List what waits for a person: sessions at a prompt, questions, approvals, requests for the controls, parked runs.

hold inbox
hold inbox -f                        follow: print each item as it arrives and changes
hold answer ASK …                    answer one
"""

from __future__ import annotations

import time

from ...client._sync.host import Host
from ..ui import arguments, printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]

_STYLES = {
    "secret": "magenta",
    "approval": "yellow",
    "control_request": "yellow",
    "question": "cyan",
    "input": "green",
    "menu": "yellow",
    "parked_run": "yellow",
    "held_controls": "blue",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-f", "--follow", action="store_true", help="follow new items until Ctrl-C")
    parser.add_argument(
        "-a", "--all", action="store_true", help="also items that are answered, denied, expired or gone"
    )
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    host = Host()
    if args.follow:
        for item in host.follow_inbox_raw():
            if args.json:
                printing.print_json(item)
            else:
                _line(item)
            printing.flush()
        return 0
    items = host.call("inbox", all=args.all)["items"]
    if args.json:
        printing.print_json(items)
        return 0
    now = time.time()
    rows, styles = [], []
    for item in items:
        rows.append(
            (
                item["id"],
                item["kind"].replace("_", " "),
                item["session_name"] or "-",
                who(item),
                printing.age(item["created_at"], now),
                item["state"],
                summary(item),
            )
        )
        styles.append(("bold", _STYLES.get(item["kind"], ""), "", "", "dim", "", ""))
    printing.table(("ASK", "KIND", "SESSION", "FROM", "AGE", "STATE", "WHAT"), rows, styles)
    if not items:
        printing.note("nothing waits for a person")
    return 0


def _line(item: Json) -> None:
    cells = (item["id"], item["state"], item["kind"], item["session_name"] or "-", who(item), summary(item))
    print("\t".join(printing.safe(c).replace("\t", " ") for c in cells))


def who(item: Json) -> str:
    asker = item["asker"]
    return f"{asker['name']} ({asker['kind']})" if asker else "-"


def summary(item: Json, width: int = 120) -> str:
    """An item in one line, with who answered it. `hold answer` and --json show it whole."""
    whole = item["detail"].get("prompt") or item["text"] if item["kind"] == "menu" else item["text"]
    text: str = whole.replace("\n", " ")
    if item["kind"] == "approval" and item["detail"].get("verb"):
        text = f"{item['detail']['verb']}: {text}"
    if item["options"]:
        text += f" [{' | '.join(item['options'])}]"
    if item["answered_by"]:
        text = f"{item['state']} by {item['answered_by']['name']}: {text}"
    return text if len(text) <= width else text[: width - 1] + "…"
