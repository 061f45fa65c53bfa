"""Show the current state of this host or of one session, observed now.

hold status
hold status web
hold status web --json         everything the kernel reports
"""

from __future__ import annotations

import sys
import time

from ...client._sync.host import Host
from ..ui import arguments, printing, session_text
from . import ls, ps

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_LABEL_STYLE = "dim"
_STYLES = {
    "running": "green",
    "at_prompt": "green",
    "full_screen": "green",
    "waiting_for_input": "yellow",
    "waiting_for_secret": "yellow",
    "menu": "yellow",
    "unknown": "red",
    "exited": "dim",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser, nargs="?")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    host = Host()
    if args.session is None:
        return _overview(host, as_json=args.json)
    status = host.call("status", session=args.session)
    if args.json:
        printing.print_json(status)
    elif sys.stdout.isatty():
        _page(status, time.time())
    else:
        for label, value in _lines(status, time.time()):
            print(f"{label}\t{printing.safe(value)}")
    return 0


def _overview(host: Host, *, as_json: bool) -> int:
    answer = host.call("status")
    if as_json:
        printing.print_json(answer)
        return 0
    about, now = answer["host"], time.time()
    if sys.stdout.isatty():
        print(
            f"{printing.paint('host', 'bold')} {about['id']}, pid {about['pid']}, version {about['version']},"
            f" up {printing.age(about['started_at'], now)}, home {printing.safe(about['home'])}"
            f"{_kept(about)}{_served(about)}\n"
        )
    else:
        print("\t".join(map(str, ("host", about["id"], about["pid"], about["version"], about["started_at"]))))
        for name in ("store", "cache"):
            if about.get(name):
                print(f"{name}\t{printing.safe(about[name])}")
        if about.get("web"):
            print(f"web\t{about['web']['url']}\t{about['web']['pid'] or '-'}")
    shown = [s for s in answer["sessions"] if s["state"] in ("live", "lost") or s.get("restart_at")]
    ended = len(answer["sessions"]) - len(shown)
    if shown:
        ls.show(shown, now)
    else:
        printing.note("no sessions are running; start one: hold run")
    if ended:
        printing.note(f"and {ended} ended: hold ls -a")
    return 0


def _kept(about: dict[str, Any]) -> str:
    """The store and the cache, if they are not the default."""
    store, cache = about.get("store") or "", about.get("cache")
    elsewhere = f", store {printing.safe(store)}" if store and not store.endswith(f"{about['home']}/work.db") else ""
    return elsewhere + (f", cache {printing.safe(cache)}" if cache else "")


def _served(about: dict[str, Any]) -> str:
    served = about.get("web")
    return "" if served is None else f", HTTP at {served['url']}{'' if served['pid'] else ' (not running)'}"


def _lines(s: dict[str, Any], now: float) -> list[tuple[str, str]]:
    """Labels and values as lines, for a pipe."""
    activity = s["activity"]
    out = [
        ("name", s["name"]),
        ("state", s["state"]),
        ("activity", activity["kind"]),
        ("confidence", activity["confidence"]),
        ("evidence", activity["evidence"]),
    ]
    if activity["prompt"]:
        out.append(("prompt", activity["prompt"]))
    out += session_text.facts(s, now)
    out += [("process", f"{p['pid']} {p['ppid']} {p['command']}") for p in s["processes"]]
    return out


def _page(s: dict[str, Any], now: float) -> None:
    activity = s["activity"]
    style = _STYLES.get(activity["kind"], "") if s["state"] == "live" else "red" if s["state"] == "lost" else "dim"
    print(
        f"{printing.paint('●', style)} {printing.paint(printing.safe(s['name']), 'bold')}"
        f"  {printing.paint(printing.safe(session_text.headline(s)), style)}"
    )
    if activity["prompt"] and s["state"] == "live":
        print(f"  {printing.paint('>', 'yellow')} {printing.safe(activity['prompt'])}")
    print(printing.paint(f"  {printing.safe(activity['evidence'])}", _LABEL_STYLE) + "\n")
    facts, before = session_text.facts(s, now), ""
    width = max(len(label) for label, _ in facts)
    for label, value in facts:
        shown = label if label != before else ""
        print(f"  {printing.paint(shown.ljust(width), _LABEL_STYLE)}  {printing.safe(value)}")
        before = label
    if s["processes"]:
        print()
        ps.show(s["processes"])
